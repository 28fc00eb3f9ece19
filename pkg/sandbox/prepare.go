package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"correx/pkg/events"
	"correx/pkg/tools"
	"correx/pkg/tools/workspace"
)

// A movedError says that a file is not any more what was approved.
type movedError struct {
	path      string
	was, isIt string
}

func (e *movedError) Error() string {
	return fmt.Sprintf("%s changed since this call was approved: it %s and %s now; ask again, so that the approval is for what is there",
		e.path, contentWas(e.was), contentIs(e.isIt))
}

func contentWas(sum string) string {
	if sum == "" {
		return "did not exist"
	}
	return fmt.Sprintf("had SHA-256 %.12s…", sum)
}

func contentIs(sum string) string {
	if sum == "" {
		return "does not exist"
	}
	return fmt.Sprintf("has %.12s…", sum)
}

// needsDir reports whether a request wants a directory of its own: any but those
// that change files in place only.
func needsDir(t tools.Tool, r events.ToolRequest) bool {
	if d, ok := t.(tools.DirTool); ok {
		return d.NeedsDir(r)
	}
	_, inPlace := t.(tools.StagingTool)
	return !inPlace
}

// prepare makes the invocation's directory and has the journal keep what the
// files are. Nothing is changed before it is over. A tool that touches nothing
// gets neither, and one that changes files in place only gets no directory.
func (r *run) prepare(ctx context.Context) error {
	if !tools.Touches(r.tool) {
		return nil
	}
	if needsDir(r.tool, r.call.Request) {
		if err := r.makeDir(); err != nil {
			return err
		}
	}
	if tools.Commits(r.tool, r.call.Request) {
		return r.prepareLate()
	}
	r.scope = tools.Scope{Dir: r.dir, Base: r.call.Base}
	affects, listed := r.tool.(tools.FileAffectingTool)
	if listed {
		r.paths = slices.Compact(slices.Sorted(slices.Values(affects.AffectedPaths(r.call.Request))))
		unlock, err := r.x.locks.lock(ctx, r.paths)
		if err != nil {
			return err
		}
		r.unlock = unlock
		if err := r.readBefore(); err != nil {
			return fmt.Errorf("back up: %w", err)
		}
	}
	if err := r.checkBase(); err != nil {
		return err
	}
	if err := r.x.o.Journal.Begin(r.call.Key, r.tool.Name(), r.files, !listed); err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	if e := r.x.o.Journal.find(r.call.Key); e != nil {
		r.scope.Recorder = r.x.o.Journal.recorder(e)
	}
	return nil
}

func (r *run) makeDir() error {
	dir := r.call.Key.dir(r.x.root)
	for range 1000 { // others of the session come and go, and the last one removes its directory
		err := os.MkdirAll(filepath.Dir(dir), 0o700)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("make sandbox directory: %w", err)
		}
		err = os.Mkdir(dir, 0o700)
		if err == nil {
			r.dir = dir
			return nil
		}
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make sandbox directory: %s exists; this invocation runs already", dir)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make sandbox directory: %w", err)
		}
	}
	return fmt.Errorf("make sandbox directory: %s is removed again and again", filepath.Dir(dir))
}

// readBefore reads every file that the tool announced.
func (r *run) readBefore() error {
	staging, trusted := r.tool.(tools.StagingTool)
	for _, path := range r.paths {
		var place workspace.Place
		var err error
		if trusted {
			place, err = staging.Place(path)
		} else {
			place, err = placeAlone(path)
		}
		if err != nil {
			return err
		}
		file, err := place.Look(workspace.MaxSize)
		if err != nil {
			return err
		}
		r.files = append(r.files, Change{
			Undo: workspace.Undo{
				Root: place.Root(), Rel: place.Rel(), Before: file.State,
				Temp: workspace.TempName(), Dirs: place.MissingDirs(), Trusted: trusted,
			},
			Data: file.Data,
		})
		r.before = append(r.before, file.Data)
	}
	return nil
}

// placeAlone is a path of a tool that has no allowed directories of its own: the
// directory that it is in stands for one.
func placeAlone(path string) (workspace.Place, error) {
	roots, err := workspace.Open([]string{filepath.Dir(path)})
	if err != nil {
		return workspace.Place{}, err
	}
	return roots.Find(path)
}

// checkBase holds the files against what the approval rests on.
func (r *run) checkBase() error {
	if r.call.Base == nil {
		return nil
	}
	approved := make(map[string]string, len(r.call.Base))
	for _, b := range r.call.Base {
		approved[b.Path] = b.SHA256
	}
	for _, f := range r.files {
		was, ok := approved[f.Path()]
		if !ok {
			return fmt.Errorf("%s would be changed, and the approval does not name it; ask again", f.Path())
		}
		if was != f.Before.SHA256 {
			return &movedError{path: f.Path(), was: was, isIt: f.Before.SHA256}
		}
	}
	return nil
}

// noteUnstaged records what the files are after a tool that does not announce
// its changes one by one.
func (r *run) noteUnstaged() {
	if _, trusted := r.tool.(tools.StagingTool); trusted || r.scope.Recorder == nil {
		return
	}
	for _, f := range r.files {
		now, err := f.Look()
		if err == nil && !now.Same(f.Before) {
			err = r.scope.Recorder.Applied(f.Path(), now.State)
		}
		if err != nil {
			r.x.o.Logger.Warn("note change", "path", f.Path(), "err", err)
		}
	}
}

// pathLocks lets one invocation at a time change a path.
type pathLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// lock takes all paths, which are sorted, so that two never wait for each other.
func (l *pathLocks) lock(ctx context.Context, paths []string) (unlock func(), err error) {
	var taken []string
	unlock = func() { l.unlock(taken) }
	for _, p := range paths {
		if err := l.take(ctx, p); err != nil {
			unlock()
			return nil, fmt.Errorf("wait for %s, which another invocation changes: %w", p, err)
		}
		taken = append(taken, p)
	}
	return unlock, nil
}

func (l *pathLocks) take(ctx context.Context, path string) error {
	for {
		l.mu.Lock()
		free, busy := l.held[path]
		if !busy {
			if l.held == nil {
				l.held = make(map[string]chan struct{})
			}
			l.held[path] = make(chan struct{})
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *pathLocks) unlock(paths []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range paths {
		close(l.held[p])
		delete(l.held, p)
	}
}
