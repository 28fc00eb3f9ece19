package tools

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"correx/pkg/events"
	"correx/pkg/tools/diff"
	"correx/pkg/tools/workspace"
)

// fileParameters are the parameters of all file tools. A nil pointer was not
// given.
type fileParameters struct {
	Operation   string  `json:"operation"`
	Path        string  `json:"path"`
	Content     *string `json:"content"`
	Target      *string `json:"target"`
	Replacement *string `json:"replacement"`
}

// An operation is one thing a file tool can do. Exactly the named parameters
// belong to it, besides operation and path.
type operation struct {
	name  string
	needs []string
}

// files is what the file tools have in common.
type files struct {
	name       string
	roots      *workspace.Roots
	operations []operation
}

func openFiles(name string, dirs []string, operations ...operation) (files, error) {
	roots, err := workspace.Open(dirs)
	if err != nil {
		return files{}, err
	}
	return files{name: name, roots: roots, operations: operations}, nil
}

// Name implements [Tool].
func (f files) Name() string { return f.name }

// parse reads the parameters of one request and finds its place.
func (f files) parse(r events.ToolRequest) (fileParameters, workspace.Place, error) {
	var p fileParameters
	if err := decode(r, &p); err != nil {
		return p, workspace.Place{}, fmt.Errorf("%s: %w", f.name, err)
	}
	if err := f.checkOperation(p); err != nil {
		return p, workspace.Place{}, err
	}
	place, err := f.roots.Find(p.Path)
	if err != nil {
		return p, workspace.Place{}, fmt.Errorf("%s: %w", f.name, err)
	}
	return p, place, nil
}

func (f files) checkOperation(p fileParameters) error {
	given := map[string]bool{"content": p.Content != nil, "target": p.Target != nil, "replacement": p.Replacement != nil}
	var known []string
	for _, o := range f.operations {
		known = append(known, o.name)
		if o.name != p.Operation {
			continue
		}
		needs := map[string]bool{}
		for _, n := range o.needs {
			needs[n] = true
		}
		for _, field := range []string{"content", "target", "replacement"} {
			switch {
			case needs[field] && !given[field]:
				return fmt.Errorf("%s: the operation %s needs %s, which is missing", f.name, o.name, field)
			case given[field] && !needs[field]:
				return fmt.Errorf("%s: the operation %s takes no %s", f.name, o.name, field)
			}
		}
		return nil
	}
	if p.Operation == "" {
		return fmt.Errorf("%s: operation is missing; use one of %q", f.name, known)
	}
	return fmt.Errorf("%s: operation %q is unknown; use one of %q", f.name, p.Operation, known)
}

// A fileChange is what a request would make of one file.
type fileChange struct {
	asked  string // path as the request has it
	place  workspace.Place
	before workspace.File
	after  []byte
	remove bool
	done   string // what to answer when it is done
}

// readChange starts a change: the file as it is.
func readChange(p fileParameters, place workspace.Place) (fileChange, error) {
	before, err := place.Look(workspace.MaxSize)
	if err != nil {
		return fileChange{}, err
	}
	if before.Links > 1 {
		return fileChange{}, fmt.Errorf("%s has %d hard links; changing it would change its other names too, so it is not touched", place.Path(), before.Links)
	}
	return fileChange{asked: p.Path, place: place, before: before}, nil
}

func (c fileChange) empty() bool {
	return !c.remove && c.before.Exists && string(c.before.Data) == string(c.after)
}

func (c fileChange) preview(tier events.Tier) Preview {
	path := c.place.Path()
	text := diff.Unified(
		diff.Side{Name: path, Exists: c.before.Exists, Data: c.before.Data},
		diff.Side{Name: path, Exists: !c.remove, Data: c.after},
	)
	return Preview{
		Valid: true, Tier: tier, Diff: Summary(text, SummarySize), Affected: []string{path},
		Base: []events.BaseHash{{Path: path, SHA256: c.before.SHA256}},
	}
}

// apply makes the change, if the file still is what was approved.
func (c fileChange) apply(ctx context.Context, r events.ToolRequest) ToolResult {
	scope, path := ScopeOf(ctx), c.place.Path()
	if ctx.Err() != nil {
		f := fail(r, fmt.Sprintf("stopped before %s was touched: %v", path, context.Cause(ctx)))
		f.Recoverable = true
		return f
	}
	if b, ok := scope.base(path); ok && b.SHA256 != c.before.SHA256 {
		f := fail(r, fmt.Sprintf("%s changed since this call was approved; nothing was done. Ask again, so that the approval is for what is there", path))
		f.Recoverable = true
		return f
	}
	meta := map[string]string{"path": path, "sha256": workspace.Hash(c.after)}
	if c.remove {
		delete(meta, "sha256")
	}
	if c.empty() {
		return Success{Invocation: r.Invocation, Output: c.asked + " has exactly this content already", Metadata: meta}
	}
	var err error
	if c.remove {
		err = c.place.Delete(c.before.State, scope.Recorder)
	} else {
		_, err = c.place.Write(c.before.State, c.after, scope.Recorder)
	}
	if err != nil {
		f := fail(r, err.Error())
		f.Recoverable = errors.Is(err, workspace.ErrChanged) || passes(err)
		return f
	}
	return Success{Invocation: r.Invocation, Output: c.done, Metadata: meta, Detail: Detail{Affected: []string{path}}}
}

// A changer is a file tool that changes one file at a time. plan says what a
// request would make of it, or why it cannot.
type changer struct {
	files
	tier events.Tier
	plan func(fileParameters, workspace.Place) (fileChange, error)
}

func (t changer) change(r events.ToolRequest) (fileChange, error) {
	p, place, err := t.parse(r)
	if err != nil {
		return fileChange{}, err
	}
	c, err := t.plan(p, place)
	if err != nil {
		return fileChange{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return c, nil
}

// Tier implements [Tool].
func (t changer) Tier() events.Tier { return t.tier }

// RequiredCapabilities implements [Tool].
func (changer) RequiredCapabilities() []events.ToolCapability {
	return []events.ToolCapability{events.FileWrite}
}

// AffectedPaths implements [FileAffectingTool].
func (t changer) AffectedPaths(r events.ToolRequest) []string {
	_, place, err := t.parse(r)
	if err != nil {
		return nil
	}
	return []string{place.Path()}
}

// Place implements [StagingTool].
func (t changer) Place(path string) (workspace.Place, error) { return t.roots.Find(path) }

// passes reports whether an error may be gone at the next try.
func passes(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
