package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

// Exit statuses of a session that was watched to its end, beside the usual.
const (
	statusCancelled = 3 // somebody cancelled it
	statusDenied    = 4 // it failed after an approval was denied or expired
)

const runHelp = `Run starts a session with a task and shows it as it happens. When a tool needs
an approval it shows exactly what would be done and asks:

    a  approve once          r  reject, with a reason
    s  for this session      x  stop the session

Only a key that is pressed after the question counts. Where nobody is at a
terminal, the question waits for bus approve until its deadline; --yes (or
YES=1) approves everything that is asked.

The story goes to stderr, the answer alone to stdout. Ctrl-C leaves the session
running; bus show --follow takes it up again. A task of "-" is read from stdin.

Exit status: 0 the session completed, 1 it failed, 3 it was cancelled, 4 it
failed after an approval was denied or expired, 130 interrupted.`

// runFlags are those of run.
type runFlags struct {
	start events.SessionStart
	id    string
	model string
	mode  string
	wall  time.Duration
	yes   bool
	quiet bool
}

func newRun(a *app) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run <task>", Short: "give an agent a task and watch it", Long: runHelp,
		Example: "  bus run \"Write Hello to notes/hello.txt and read it back.\"\n  bus run --mode auto --tools file_read,file_write \"…\"",
		Args:    cli.Args("the task"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), f, args[0]) },
	}
	p := cmd.Flags()
	p.StringVar(&f.id, "session", "", "id of the session (default: the kernel gives one)")
	p.StringVar(&f.start.System, "system", "", "system prompt")
	p.StringVar(&f.model, "model", "", "model, by name")
	p.StringVar((*string)(&f.start.Capability), "capability", "", "model, by what it is good at: CODING, REASONING or GENERAL")
	p.StringSliceVar(&f.start.Tools, "tools", nil, "tools it may use (default: as configured)")
	p.StringVar(&f.mode, "mode", "", "prompt, auto or deny (default: as configured)")
	p.IntVar(&f.start.Limits.Turns, "turns", 0, "at most so many turns")
	p.IntVar(&f.start.Limits.ToolCalls, "tool-calls", 0, "at most so many tool calls")
	p.IntVar(&f.start.Limits.Tokens, "tokens", 0, "at most so many tokens")
	p.DurationVar(&f.wall, "wall-time", 0, "at most so long")
	p.Float64Var(&f.start.Generation.Temperature, "temperature", 0, "of the model")
	p.Int64Var(&f.start.Generation.Seed, "seed", 0, "of the model")
	p.IntVar(&f.start.Generation.MaxTokens, "max-tokens", 0, "of one reply")
	p.BoolVarP(&f.yes, "yes", "y", false, "approve everything that is asked (YES=1)")
	p.BoolVar(&f.quiet, "detach", false, "print the session's id and do not watch")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{"prompt", "auto", "deny"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("capability", cobra.FixedCompletions([]string{"CODING", "REASONING", "GENERAL"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) run(ctx context.Context, f runFlags, task string) error {
	task, err := a.text(task)
	if err != nil {
		return err
	}
	start := f.start
	start.Task, start.Session, start.Model = task, events.SessionID(f.id), events.ModelID(f.model)
	start.Mode, start.Limits.WallTime = events.ApprovalMode(f.mode), f.wall
	if faults := start.Check(); len(faults) > 0 {
		return cli.Usage("%s", strings.Join(faults, "; "))
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ans, err := a.command(ctx, c, start)
	if err != nil {
		return err
	}
	if f.quiet {
		return a.tell(ans, "%s", ans.Session)
	}
	if !a.flags.JSON {
		fmt.Fprintf(a.env.Stderr, "session %s\n", a.env.ErrStyle().Bold(string(ans.Session)))
	}
	return a.watchSession(ctx, c, session.State{ID: ans.Session}, ans.Seq, f.yes)
}

// text is an argument, or all of stdin where it is "-".
func (a *app) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	data, err := io.ReadAll(io.LimitReader(a.env.Stdin, events.MaxCommand+1))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	return strings.TrimRight(string(data), "\n"), nil
}

// watchSession shows a session, of which state is known, from a sequence on
// until it ends, and returns its outcome as an exit status.
func (a *app) watchSession(ctx context.Context, c *client, state session.State, from uint64, yes bool) error {
	log, err := c.openLog(ctx)
	if err != nil {
		return err
	}
	w := a.watcher(c, state, yes)
	state, err = w.watch(ctx, log, events.SessionFilter(state.ID), from, func(s session.State, r events.Record) bool {
		return ended(s)
	})
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(a.env.Stderr, "\nsession %s goes on; bus show --follow %s takes it up again, bus cancel %s ends it\n",
				state.ID, state.ID, state.ID)
		}
		return err
	}
	return a.outcome(state, w.denied)
}

// watcher makes one that knows state, with the questions that wait in it.
func (a *app) watcher(c *client, state session.State, yes bool) *watcher {
	w := &watcher{app: a, client: c, yes: a.yes(yes), state: state}
	for _, i := range state.Tools {
		if i.Status() == session.ApprovalRequested {
			w.waiting = append(w.waiting, i.ID)
		}
	}
	return w
}

// yes reports whether whatever is asked is to be approved.
func (a *app) yes(flag bool) bool { return flag || a.env.Getenv("YES") == "1" }

// ended reports whether a session is over, at least until somebody says more.
func ended(s session.State) bool {
	switch s.Status {
	case session.SessionCompleted, session.SessionFailed, session.SessionCancelled:
		return true
	}
	return false
}

// outcome prints the answer of a session that ended, and maps how it ended.
func (a *app) outcome(s session.State, denied bool) error {
	text, _ := s.Answer()
	if a.flags.JSON {
		if err := cli.JSONLine(a.env.Stdout, sessionJSON(s)); err != nil {
			return err
		}
	} else if s.Status == session.SessionCompleted {
		fmt.Fprintln(a.env.Stdout, a.env.OutText(text))
	}
	switch {
	case s.Status == session.SessionCompleted:
		return nil
	case s.Status == session.SessionCancelled:
		return cli.Exit(statusCancelled, nil)
	case denied:
		return cli.Exit(statusDenied, nil)
	}
	return cli.Exit(cli.StatusFailed, nil) // the story has said why
}
