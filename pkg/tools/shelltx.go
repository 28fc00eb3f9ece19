package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"correx/pkg/events"
	"correx/pkg/tools/changes"
	"correx/pkg/tools/workspace"
)

// What a run may change at most.
const (
	maxChanges     = 2000
	maxChangedFile = workspace.MaxSize
	maxChangeBytes = 32 << 20
)

// transact runs the command on an overlay, and commits what it changed if it
// succeeds: at once, or when a person has seen it.
func (r *shellRun) transact(ctx context.Context) ToolResult {
	set, exit, err := r.rehearse(ctx, r.program.Network)
	switch {
	case errors.Is(err, errNotStarted):
		return r.notStarted(err)
	case err != nil:
		return r.undone(fmt.Sprintf("shell: %s ended well, but what it changed cannot be committed, so nothing is: %v", r.argv[0], err))
	}
	result := r.result(r.request, r.argv[0], exit, events.EffectsNone)
	done, ok := result.(Success)
	switch {
	case !ok:
		return r.dropped(result.(Failure))
	case set.Empty():
		return done
	}
	if moved := r.moved(ctx, set); moved != "" {
		return r.undone("shell: " + moved)
	}
	if r.commit == CommitReview {
		return r.review(done, set)
	}
	roots, err := workspace.Open(r.changeable())
	if err != nil {
		return r.undone("shell: " + err.Error())
	}
	defer roots.Close()
	if err := commitIn(ctx, roots, set); err != nil {
		f := r.undone(fmt.Sprintf("shell: %s ended well, but its changes could not be committed: %v", r.argv[0], err))
		f.Recoverable = true
		return f
	}
	return r.tell(done, set)
}

var errNotStarted = errors.New("not started")

// rehearse runs the command on an overlay and returns what it changed, if it
// succeeded.
func (r *shellRun) rehearse(ctx context.Context, network bool) (changes.Set, Exit, error) {
	cmd := r.command()
	cmd.Network = network
	var layers []changes.Layer
	for k, dir := range r.changeable() {
		at := filepath.Join(r.own, "overlay", strconv.Itoa(k))
		o := Overlay{Dir: dir, Upper: filepath.Join(at, "upper"), Work: filepath.Join(at, "work")}
		if err := errors.Join(os.MkdirAll(o.Upper, 0o700), os.MkdirAll(o.Work, 0o700)); err != nil {
			return changes.Set{}, Exit{}, fmt.Errorf("%w: %w", errNotStarted, err)
		}
		if fi, err := os.Stat(dir); err == nil { // the command sees the mode of the upper one
			if err := os.Chmod(o.Upper, fi.Mode().Perm()|0o700); err != nil {
				return changes.Set{}, Exit{}, fmt.Errorf("%w: %w", errNotStarted, err)
			}
		}
		cmd.Overlays = append(cmd.Overlays, o)
		layers = append(layers, changes.Layer{Dir: dir, Upper: o.Upper})
		r.uppers = append(r.uppers, o.Upper)
	}
	exit, err := r.runner.Run(ctx, cmd)
	if err != nil {
		return changes.Set{}, exit, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	if reason, _ := r.reason(r.argv[0], "", exit); reason != "" {
		return changes.Set{}, exit, nil
	}
	set, err := changes.Read(ctx, layers, changes.Limits{Entries: maxChanges, FileSize: maxChangedFile, Total: maxChangeBytes}, r.isProtected)
	return set, exit, err
}

// isProtected reports whether nothing may change a path, whoever asks.
func (t *ShellTool) isProtected(path string) bool {
	for _, root := range t.roots {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return protects(root, rel, path, t.protected)
		}
	}
	return inGit(path)
}

// moved says how the set differs from what a person was shown, if it was shown.
func (r *shellRun) moved(ctx context.Context, set changes.Set) string {
	shown := ScopeOf(ctx).Base
	if len(shown) == 0 {
		return ""
	}
	was := map[string]string{}
	for _, b := range shown {
		was[b.Path] = b.SHA256
	}
	now := set.Base()
	for _, b := range now {
		sum, ok := was[b.Path]
		switch {
		case !ok:
			return fmt.Sprintf("%s would change %s now, which it did not when it was shown; nothing was changed: ask again", r.argv[0], b.Path)
		case sum != b.SHA256:
			return fmt.Sprintf("%s changed since this call was approved; nothing was changed: ask again, so that the approval is for what is there", b.Path)
		}
		delete(was, b.Path)
	}
	for path := range was {
		return fmt.Sprintf("%s would not change %s now, which it did when it was shown; nothing was changed: ask again", r.argv[0], path)
	}
	return ""
}

// undone is a failure that left nothing behind.
func (r *shellRun) undone(reason string) Failure {
	f := fail(r.request, reason)
	f.Effects = events.EffectsNone
	return f
}

// dropped says of a failed run that its changes are gone, if there were any. What
// a program with the network did elsewhere nobody knows.
func (r *shellRun) dropped(f Failure) ToolResult {
	f.Effects = events.EffectsNone
	if r.program.Network {
		f.Effects = events.EffectsUnknown
	}
	for _, dir := range r.uppers {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			f.Reason += "\n(What it had changed was not kept.)"
			return f
		}
	}
	return f
}

// tell adds to a success what was changed.
func (r *shellRun) tell(s Success, set changes.Set) ToolResult {
	created, changed, deleted := set.Summary()
	s.Structured = withChanges(s.Structured, created, changed, deleted)
	if s.Output == "" {
		s.Output = summaryText(created, changed, deleted)
	}
	return s
}
