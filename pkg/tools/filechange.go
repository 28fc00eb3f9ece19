package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"correx/pkg/events"
	"correx/pkg/tools/diff"
	"correx/pkg/tools/workspace"
)

// A fileChange is what a request would make of one file.
type fileChange struct {
	place  workspace.Place
	before workspace.File
	after  []byte
	remove bool
	mkdir  bool // it becomes a directory
}

// readChange starts a change: the file as it is, if it may be changed at all.
func (t changer) readChange(place workspace.Place) (fileChange, error) {
	if err := checkProtected(place, t.protected); err != nil {
		return fileChange{}, err
	}
	before, err := place.Look(workspace.MaxSize)
	if err != nil {
		return fileChange{}, err
	}
	if before.Links > 1 {
		return fileChange{}, fmt.Errorf("%s has %d hard links; changing it would change its other names too, so it is not touched", place.Path(), before.Links)
	}
	if err := checkWritable(place, before.Exists); err != nil {
		return fileChange{}, err
	}
	if err := place.Changeable(before.State); err != nil {
		return fileChange{}, err
	}
	return fileChange{place: place, before: before}, nil
}

func (c fileChange) empty() bool {
	return !c.remove && !c.mkdir && c.before.Exists && string(c.before.Data) == string(c.after)
}

func (c fileChange) diff() string {
	path := c.place.Path()
	if c.mkdir {
		return fmt.Sprintf("--- /dev/null\n+++ %s/\nA new directory\n", path)
	}
	return diff.Unified(
		diff.Side{Name: path, Exists: c.before.Exists, Data: c.before.Data},
		diff.Side{Name: path, Exists: !c.remove, Data: c.after},
	)
}

// make makes the change, over nothing but what was read, and returns what it left.
func (c fileChange) make(rec Recorder) (workspace.State, error) {
	if c.mkdir {
		return c.place.Mkdir(rec)
	}
	if c.remove {
		return workspace.State{}, c.place.Delete(c.before.State, rec)
	}
	return c.place.Write(c.before.State, c.after, rec)
}

// fileChanges is what a request would make of all the files that it changes: of all,
// or of none.
type fileChanges struct {
	files []fileChange
	done  string // what to answer when it is done
	meta  map[string]string
	// rehearse makes the changes on copies; nil: there is nothing to try out.
	rehearse func(context.Context) (events.Isolation, error)
}

// try rehearses the changes, where they can be.
func (c fileChanges) try(ctx context.Context) (events.Isolation, error) {
	if c.rehearse == nil {
		return "", nil
	}
	return c.rehearse(ctx)
}

func (c fileChanges) preview(ctx context.Context, tier events.Tier) Preview {
	if _, err := c.try(ctx); err != nil {
		return Preview{Reason: visible(err.Error()), Tier: tier}
	}
	p := Preview{Valid: true, Tier: tier}
	var text strings.Builder
	for _, f := range c.files {
		path := f.place.Path()
		text.WriteString(f.diff())
		p.Affected = append(p.Affected, path)
		p.Base = append(p.Base, events.BaseHash{Path: path, SHA256: f.before.SHA256})
	}
	p.Diff = Summary(text.String(), SummarySize)
	return p
}

// stale says that a file is not any more what was approved; empty if all are.
func (c fileChanges) stale(s Scope) string {
	for _, f := range c.files {
		path := f.place.Path()
		if b, ok := s.base(path); ok && b.SHA256 != f.before.SHA256 {
			return fmt.Sprintf("%s changed since this call was approved; nothing was done. Ask again, so that the approval is for what is there", path)
		} else if !ok && s.Base != nil {
			return fmt.Sprintf("%s would be changed, and the approval does not name it; nothing was done. Ask again", path)
		}
	}
	return ""
}

// apply makes the changes, if the files still are what was approved.
func (c fileChanges) apply(ctx context.Context, r events.ToolRequest) ToolResult {
	scope := ScopeOf(ctx)
	if why := c.stale(scope); why != "" {
		f := fail(r, why)
		f.Recoverable = true
		return f
	}
	isolation, err := c.try(ctx)
	if err != nil {
		f := fail(r, visible(err.Error()))
		f.Recoverable, f.Isolation = passes(err) || ctx.Err() != nil, isolation
		return f
	}
	var undo []undoable
	var changed []string
	for _, f := range c.files {
		if f.empty() {
			continue
		}
		u := undoable{f, f.place.MissingDirs(), nil}
		err := stopped(ctx, f.place)
		if err == nil {
			var left workspace.State
			if left, err = f.make(scope.Recorder); err == nil {
				u.left = &left
			}
		}
		if err != nil {
			return c.failed(r, scope, append(undo, u), err)
		}
		undo, changed = append(undo, u), append(changed, f.place.Path())
	}
	return Success{Invocation: r.Invocation, Output: c.done, Metadata: c.meta, Detail: Detail{Affected: changed, Isolation: isolation}}
}

func stopped(ctx context.Context, place workspace.Place) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("stopped before %s was touched: %w", place.Path(), context.Cause(ctx))
}

// failed is the failure of a change. What the others made is taken back here if
// nobody records changes; else by whoever does.
func (c fileChanges) failed(r events.ToolRequest, s Scope, undo []undoable, err error) Failure {
	f := fail(r, visible(err.Error()+hintFor(err)))
	f.Recoverable = errors.Is(err, workspace.ErrChanged) || passes(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if len(c.files) > 1 {
		f.Reason += "; of the files of this call none is changed"
	}
	if s.Recorder != nil {
		return f
	}
	for i := len(undo) - 1; i >= 0; i-- {
		if err := undo[i].takeBack(); err != nil {
			f.Reason += "; but " + err.Error()
			f.Effects = events.EffectsConflict
		}
	}
	return f
}

// An undoable is a change that was begun.
type undoable struct {
	fileChange
	dirs []string // that did not exist before
	left *workspace.State
}

func (u undoable) takeBack() error {
	undo := workspace.Undo{
		Root: u.place.Root(), Rel: u.place.Rel(), Before: u.before.State, Applied: u.left,
		Temp: workspace.TempName(), Dirs: u.dirs, Trusted: true,
	}
	outcome, err := undo.Restore(func() ([]byte, error) { return u.before.Data, nil })
	if err == nil && outcome == workspace.Conflict {
		err = fmt.Errorf("%s was changed by somebody else meanwhile and is left as it is", u.place.Path())
	}
	return err
}

// passes reports whether an error may be gone at the next try.
func passes(err error) bool {
	var passing *passingError
	if errors.As(err, &passing) {
		return true
	}
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// hintFor says what an error of the file system means for whoever reads it.
func hintFor(err error) string {
	for _, h := range []struct {
		errno syscall.Errno
		hint  string
	}{
		{syscall.ENOSPC, "the file is as it was; it can be tried again when there is space"},
		{syscall.EDQUOT, "the file is as it was; the quota of this worker's user is used up"},
		{syscall.EROFS, "the file system is mounted read-only"},
		{syscall.EBUSY, "it is a mount point, which cannot be replaced or deleted"},
		{syscall.EPERM, "it may be immutable, or another user's"},
		{syscall.EACCES, "this worker's user may not do that there"},
		{syscall.ENAMETOOLONG, "a name may have 255 bytes"},
	} {
		if errors.Is(err, h.errno) {
			return "; " + h.hint
		}
	}
	return ""
}
