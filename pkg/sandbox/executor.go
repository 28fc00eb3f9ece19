package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"correx/pkg/events"
	"correx/pkg/tools"
	"correx/pkg/tools/changes"
)

// An Executor runs the tools of a registry, with backups of the files that they
// announced and a fresh directory for those that want one, and makes receipts.
type Executor struct {
	o     ExecutorOptions
	root  string // of the invocations' directories
	locks pathLocks
}

// ExecutorOptions are the parts of an [Executor].
type ExecutorOptions struct {
	Registry *tools.Registry
	Journal  *Journal
	// Dir is the worker's directory. An invocation's own directory is
	// Root/{session}/{invocation}; Root is Dir/sandbox where it is empty, belongs
	// to one worker alone, and is emptied at the start.
	Dir, Root string
	// Delegate runs the requests; nil: a dispatcher of Registry.
	Delegate tools.Executor
	// Approve is asked before anything else happens; its error rejects. nil:
	// whoever calls has made sure of the approval.
	Approve func(Call) error
	// Isolation is what the tools' processes reach; empty: none.
	Isolation events.Isolation
	Logger    *slog.Logger
	Now       func() time.Time
}

// NewExecutor makes the directory for invocations, and empties it.
func NewExecutor(o ExecutorOptions) (*Executor, error) {
	if o.Registry == nil || o.Journal == nil || o.Dir == "" {
		return nil, errors.New("make executor: it needs a registry, a journal and a directory")
	}
	if o.Delegate == nil {
		o.Delegate = tools.NewDispatcher(o.Registry)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Isolation == "" {
		o.Isolation = events.IsolationNone
	}
	if o.Root == "" {
		o.Root = filepath.Join(o.Dir, "sandbox")
	}
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return nil, fmt.Errorf("make executor: %w", err)
	}
	if err := errors.Join(removeAll(root), os.MkdirAll(root, 0o700)); err != nil {
		return nil, fmt.Errorf("make executor: %w", err)
	}
	return &Executor{o: o, root: root}, nil
}

// Preview says what a request would do, and touches nothing.
func (x *Executor) Preview(ctx context.Context, r events.ToolRequest) tools.Preview {
	t, ok := x.o.Registry.Resolve(r.Tool)
	if !ok {
		return tools.Preview{Reason: fmt.Sprintf("this worker has no tool %q", r.Tool)}
	}
	if p, ok := t.(tools.Previewer); ok {
		return x.preview(ctx, t, p, r)
	}
	v := t.ValidateRequest(r)
	return tools.Preview{Valid: v.OK(), Reason: v.Reason(), Tier: tools.TierOf(t, r)}
}

// preview has a tool say what it would do, with a directory to try it out in if it
// needs one. No session is called like it: their names have no dot.
func (x *Executor) preview(ctx context.Context, t tools.Tool, p tools.Previewer, r events.ToolRequest) tools.Preview {
	if d, ok := t.(tools.DirTool); !ok || !d.NeedsDir(r) {
		return p.Preview(ctx, r)
	}
	dir, err := os.MkdirTemp(x.root, "preview.")
	if err != nil {
		return tools.Preview{Reason: fmt.Sprintf("make directory for the preview: %v", err), Tier: tools.TierOf(t, r)}
	}
	defer func() {
		if err := removeAll(dir); err != nil {
			x.o.Logger.Warn("remove directory of a preview", "dir", dir, "err", err)
		}
	}()
	return p.Preview(tools.WithScope(ctx, tools.Scope{Dir: dir}), r)
}

// Admit reports why a call must be rejected before it starts, or nil.
func (x *Executor) Admit(c Call) error {
	t, ok := x.o.Registry.Resolve(c.Request.Tool)
	if !ok {
		return fmt.Errorf("this worker has no tool %q", c.Request.Tool)
	}
	tier := tools.TierOf(t, c.Request)
	switch {
	case tier >= events.T4:
		return fmt.Errorf("%s is %s here, and that is never run", c.Request.Tool, tier)
	case tier > c.Tier:
		return fmt.Errorf("%s is %s for this request, and %s was approved", c.Request.Tool, tier, c.Tier)
	}
	if err := c.Key.check(); err != nil {
		return err
	}
	if x.o.Approve != nil {
		if err := x.o.Approve(c); err != nil {
			return fmt.Errorf("not approved: %w", err)
		}
	}
	if v := t.ValidateRequest(c.Request); !v.OK() {
		return errors.New(v.Reason())
	}
	return nil
}

// Run runs a call and returns when nothing of it is left but what it changed and
// its entry in the journal: see the package comment for what the caller owes
// that. A run that failed is rolled back already.
func (x *Executor) Run(ctx context.Context, c Call) Outcome {
	if err := x.Admit(c); err != nil {
		return x.rejected(c, err)
	}
	t, _ := x.o.Registry.Resolve(c.Request.Tool)
	r := &run{x: x, call: c, tool: t, began: x.o.Now()}
	defer r.cleanUp()
	if err := r.prepare(ctx); err != nil {
		return r.notRun(err)
	}
	result := r.delegate(ctx)
	return r.settle(result)
}

// Execute implements tools.Executor for callers without a log: the request runs
// at the tier that it has, and its journal entry is cleared at once.
func (x *Executor) Execute(ctx context.Context, r events.ToolRequest) tools.ToolResult {
	c := Call{Key: Key{Session: r.Session, Invocation: r.Invocation}, Request: r}
	if t, ok := x.o.Registry.Resolve(r.Tool); ok {
		c.Tier = tools.TierOf(t, r)
	}
	out := x.Run(ctx, c)
	if err := x.o.Journal.Clear(c.Key); err != nil {
		x.o.Logger.Warn("clear journal", "key", c.Key.String(), "err", err)
	}
	return out.ToolResult(r.Invocation)
}

// A run is one call on its way.
type run struct {
	x      *Executor
	call   Call
	tool   tools.Tool
	began  time.Time
	dir    string
	paths  []string     // computed once
	files  []Change     // what they were before
	before [][]byte     // their bytes
	set    *changes.Set // what a late commit is to make
	scope  tools.Scope
	unlock func()
}

// delegate runs the tool. A tool that panics has failed.
func (r *run) delegate(ctx context.Context) (result tools.ToolResult) {
	defer func() {
		if p := recover(); p != nil {
			r.x.o.Logger.Error("tool panicked", "tool", r.call.Request.Tool, "panic", p, "stack", string(debug.Stack()))
			result = tools.Failure{
				Invocation: r.call.Request.Invocation,
				Reason:     fmt.Sprintf("the tool %s broke: %v", r.call.Request.Tool, p),
				Detail:     tools.Detail{ExitCode: 1},
			}
		}
	}()
	return r.x.o.Delegate.Execute(tools.WithScope(ctx, r.scope), r.call.Request)
}

// settle takes back what a failed run changed, and makes the outcome.
func (r *run) settle(result tools.ToolResult) Outcome {
	r.noteUnstaged()
	switch v := result.(type) {
	case tools.Success:
		return r.completed(v)
	case tools.Failure:
		return r.failed(v)
	}
	return r.failed(tools.Failure{Reason: fmt.Sprintf("the tool answered with %T, which is neither success nor failure", result)})
}

// cleanUp removes the invocation's directory, and its session's if that was the
// last.
func (r *run) cleanUp() {
	if r.unlock != nil {
		r.unlock()
	}
	if r.dir == "" {
		return
	}
	if err := removeAll(r.dir); err != nil {
		r.x.o.Logger.Warn("remove sandbox directory", "dir", r.dir, "err", err)
		return
	}
	_ = os.Remove(filepath.Dir(r.dir)) // not while others of the session run
}

// removeAll removes a directory in which a tool may have taken permissions away.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // what does not help shows below
		}
		return nil
	})
	return os.RemoveAll(dir)
}
