package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"correx/pkg/events"
)

// A shellRun is one command on its way. Its own directory has home, which is HOME
// and TMPDIR and goes when the run is over, and, beside it and out of reach of the
// command, what an overlay needs.
type shellRun struct {
	*ShellTool
	shellCall
	request events.ToolRequest
	own     string
	home    string
	uppers  []string // of the overlays
	drop    func()
}

// Execute implements [Executor].
func (t *ShellTool) Execute(ctx context.Context, r events.ToolRequest) ToolResult {
	run, err := t.begin(ctx, r)
	if err != nil {
		return fail(r, err.Error())
	}
	defer run.drop()
	if t.mode == ShellTransactional {
		return run.transact(ctx)
	}
	cmd := run.command()
	cmd.Writable = append(cmd.Writable, run.changeable()...)
	exit, err := t.runner.Run(ctx, cmd)
	if err != nil {
		return run.notStarted(err)
	}
	return t.result(r, run.argv[0], exit, events.EffectsKept)
}

// begin reads a request, makes sure that its program is what it was, and makes its
// directories.
func (t *ShellTool) begin(ctx context.Context, r events.ToolRequest) (*shellRun, error) {
	call, err := t.parse(r)
	if err != nil {
		return nil, err
	}
	if err := call.program.check(); err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	run := &shellRun{ShellTool: t, shellCall: call, request: r, own: ScopeOf(ctx).Dir, drop: func() {}}
	if run.own == "" {
		if run.own, err = os.MkdirTemp("", "correx-"); err != nil {
			return nil, fmt.Errorf("shell: make directory: %w", err)
		}
		run.drop = func() { os.RemoveAll(run.own) }
	}
	run.home = filepath.Join(run.own, "home")
	if err := os.Mkdir(run.home, 0o700); err != nil {
		run.drop()
		return nil, fmt.Errorf("shell: make directory: %w", err)
	}
	if run.dir == "" {
		run.dir = run.home
	}
	return run, nil
}

// command is the process without the directories of the workspace.
func (r *shellRun) command() Command {
	return Command{
		Path: r.program.path, Argv: r.argv, Env: r.env(r.home), Dir: r.dir, Timeout: r.allowed(r.argv[0]),
		Writable: []string{r.home}, ReadOnly: r.program.ReadOnly, Readable: r.program.Readable,
		Network: r.program.Network, Limits: r.program.Limits,
	}
}

// changeable are the directories that the command may change, besides its own.
func (r *shellRun) changeable() []string {
	return outermost(slices.Concat(r.roots, r.program.writable))
}

// allowed is how long a program may run.
func (t *ShellTool) allowed(name string) time.Duration {
	if d := t.programs[name].Timeout; d > 0 {
		return d
	}
	return t.timeout
}

func (r *shellRun) notStarted(err error) ToolResult {
	f := fail(r.request, fmt.Sprintf("shell: %s could not be started: %v", r.argv[0], err))
	f.Recoverable, f.Effects = passes(err), events.EffectsNone
	return f
}
