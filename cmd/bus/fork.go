package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/pkg/events"
)

const forkHelp = `Fork starts a session that shares another's past up to a sequence of EVENTS:
what was said, what the model answered and what tools brought. None of it happens
again, and files are as they are now. It goes on with what the flags name, and
else with what the other session has; answers that were remembered there do not
count. The other session stays as it is. With any of --temperature, --seed and
--max-tokens, what the other two leave out is the default.

A session can be forked where no inference and no tool is under way; where one is,
the error names the last sequence before it. bus show prints sequences.

What comes is shown, and the exit status is, as with bus run.`

// forkFlags are those of fork.
type forkFlags struct {
	sessionFlags
	at  uint64
	say string
}

func newFork(a *app) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use: "fork <session>", Short: "go another way from a point of a session", Long: forkHelp,
		Example: "  bus fork s-4k2 --at 57 --model qwen3\n  bus fork s-4k2 --at 57 --say \"Rather write it to a.txt.\" --mode prompt",
		Args:    cli.Args("the session"), ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.fork(cmd.Context(), f, events.SessionID(args[0]))
		},
	}
	cmd.Flags().Uint64Var(&f.at, "at", 0, "the last sequence of EVENTS that it shares")
	cmd.Flags().StringVar(&f.say, "say", "", "what the user says next")
	cmd.Flags().StringVar(&f.start.Task, "task", "", "in place of the other's")
	f.add(cmd, "the other's")
	return cmd
}

func (a *app) fork(ctx context.Context, f forkFlags, from events.SessionID) error {
	s := f.start
	want := events.SessionFork{
		Session: from, At: f.at, New: s.Session, Task: s.Task, Say: f.say, System: s.System, Model: s.Model,
		Capability: s.Capability, Tools: s.Tools, Mode: s.Mode, Limits: s.Limits, Generation: s.Generation,
	}
	if faults := want.Check(); len(faults) > 0 {
		return cli.Usage("%s", strings.Join(faults, "; "))
	}
	return a.begin(ctx, f.sessionFlags, want, fmt.Sprintf(", forked from %s at %d", from, f.at))
}
