package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/eventlog"
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

func newRun(a *app) *cobra.Command {
	var f sessionFlags
	cmd := &cobra.Command{
		Use: "run <task>", Short: "give an agent a task and watch it", Long: runHelp,
		Example: "  bus run \"Write Hello to notes/hello.txt and read it back.\"\n  bus run --mode auto --tools file_read,file_write \"…\"",
		Args:    cli.Args("the task"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), f, args[0]) },
	}
	f.add(cmd, "as configured")
	return cmd
}

func (a *app) run(ctx context.Context, f sessionFlags, task string) (err error) {
	if f.start.Task, err = a.text(task); err != nil {
		return err
	}
	if faults := f.start.Check(); len(faults) > 0 {
		return cli.Usage("%s", strings.Join(faults, "; "))
	}
	return a.begin(ctx, f, f.start, "")
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
func (a *app) watchSession(ctx context.Context, c *client, log *eventlog.Log, state session.State, from uint64, yes bool) error {
	w := a.watcher(c, state, yes)
	state, err := w.watch(ctx, log, events.SessionFilter(state.ID), from, func(s session.State, r events.Record) bool {
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
