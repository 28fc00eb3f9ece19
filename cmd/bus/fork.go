package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

const forkHelp = `Fork starts a session that shares another's past up to a sequence of EVENTS:
what was said, what the model answered and what tools brought. None of it happens
again, and files are as they are now. It goes on with what the flags name, and
else with what the other session has; answers that were remembered there do not
count. The other session stays as it is.

A session can be forked where no inference and no tool is under way; where one is,
the error names the last sequence before it. bus show prints sequences.

What comes is shown, and the exit status is, as with bus run.`

// forkFlags are those of fork.
type forkFlags struct {
	fork  events.SessionFork
	yes   bool
	quiet bool
}

func newFork(a *app) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use: "fork <session>", Short: "go another way from a point of a session", Long: forkHelp,
		Example: "  bus fork s-4k2 --at 57 --model qwen3\n  bus fork s-4k2 --at 57 --say \"Rather write it to a.txt.\" --mode prompt",
		Args:    cli.Args("the session"), ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.fork.Session = events.SessionID(args[0])
			return a.fork(cmd.Context(), f)
		},
	}
	p := cmd.Flags()
	p.Uint64Var(&f.fork.At, "at", 0, "the last sequence of EVENTS that it shares")
	p.StringVar((*string)(&f.fork.New), "session", "", "id of the new session (default: the kernel gives one)")
	p.StringVar(&f.fork.Say, "say", "", "what the user says next")
	p.StringVar(&f.fork.Task, "task", "", "in place of the other's")
	p.StringVar(&f.fork.System, "system", "", "system prompt")
	p.StringVar((*string)(&f.fork.Model), "model", "", "model, by name")
	p.StringVar((*string)(&f.fork.Capability), "capability", "", "model, by what it is good at: CODING, REASONING or GENERAL")
	p.StringSliceVar(&f.fork.Tools, "tools", nil, "tools it may use")
	p.StringVar((*string)(&f.fork.Mode), "mode", "", "prompt, auto or deny")
	p.IntVar(&f.fork.Limits.Turns, "turns", 0, "at most so many turns of its own")
	p.IntVar(&f.fork.Limits.ToolCalls, "tool-calls", 0, "at most so many tool calls of its own")
	p.IntVar(&f.fork.Limits.Tokens, "tokens", 0, "at most so many tokens of its own")
	p.DurationVar(&f.fork.Limits.WallTime, "wall-time", 0, "at most so long")
	p.Float64Var(&f.fork.Generation.Temperature, "temperature", 0, "of the model; with any of these three, what the other two leave out is the default")
	p.Int64Var(&f.fork.Generation.Seed, "seed", 0, "of the model")
	p.IntVar(&f.fork.Generation.MaxTokens, "max-tokens", 0, "of one reply")
	p.BoolVarP(&f.yes, "yes", "y", false, "approve everything that is asked (YES=1)")
	p.BoolVar(&f.quiet, "detach", false, "print the session's id and do not watch")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{"prompt", "auto", "deny"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("capability", cobra.FixedCompletions([]string{"CODING", "REASONING", "GENERAL"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) fork(ctx context.Context, f forkFlags) error {
	if faults := f.fork.Check(); len(faults) > 0 {
		return cli.Usage("%s", strings.Join(faults, "; "))
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ans, err := a.command(ctx, c, f.fork)
	if err != nil {
		return err
	}
	if f.quiet {
		return a.tell(ans, "%s", ans.Session)
	}
	if !a.flags.JSON {
		fmt.Fprintf(a.env.Stderr, "session %s, forked from %s at %d\n", a.env.ErrStyle().Bold(string(ans.Session)), f.fork.Session, f.fork.At)
	}
	return a.watchSession(ctx, c, session.State{ID: ans.Session}, ans.Seq, f.yes)
}
