package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

// sessionFlags are those of the commands that begin a session.
type sessionFlags struct {
	start       events.SessionStart
	yes, detach bool
}

// add adds the flags. Otherwise says where what they leave out comes from.
func (f *sessionFlags) add(cmd *cobra.Command, otherwise string) {
	p := cmd.Flags()
	p.StringVar((*string)(&f.start.Session), "session", "", "id of the new session (default: the kernel gives one)")
	p.StringVar(&f.start.System, "system", "", "system prompt")
	p.StringSliceVar(&f.start.Tools, "tools", nil, "tools it may use (default: "+otherwise+")")
	p.StringVar((*string)(&f.start.Mode), "mode", "", "prompt, auto or deny (default: "+otherwise+")")
	p.IntVar(&f.start.Limits.Turns, "turns", 0, "at most so many turns of its own (default: "+otherwise+")")
	p.IntVar(&f.start.Limits.ToolCalls, "tool-calls", 0, "at most so many tool calls of its own (default: "+otherwise+")")
	p.IntVar(&f.start.Limits.Tokens, "tokens", 0, "at most so many tokens of its own (default: "+otherwise+")")
	p.DurationVar(&f.start.Limits.WallTime, "wall-time", 0, "at most so long (default: "+otherwise+")")
	p.BoolVarP(&f.yes, "yes", "y", false, "approve everything that is asked (YES=1)")
	p.BoolVar(&f.detach, "detach", false, "print the session's id and do not watch")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions([]string{"prompt", "auto", "deny"}, cobra.ShellCompDirectiveNoFileComp))
	addModelFlags(cmd, &f.start.Model, &f.start.Capability, &f.start.Generation)
}

// addModelFlags adds the flags of whatever asks a model.
func addModelFlags(cmd *cobra.Command, model *events.ModelID, capability *events.ModelCapability, g *events.GenerationConfig) {
	p := cmd.Flags()
	p.StringVar((*string)(model), "model", "", "model, by name")
	p.StringVar((*string)(capability), "capability", "", "model, by what it is good at: CODING, REASONING or GENERAL")
	p.Float64Var(&g.Temperature, "temperature", 0, "of the model")
	p.Int64Var(&g.Seed, "seed", 0, "of the model")
	p.IntVar(&g.MaxTokens, "max-tokens", 0, "of one reply")
	_ = cmd.RegisterFlagCompletionFunc("capability", cobra.FixedCompletions([]string{"CODING", "REASONING", "GENERAL"}, cobra.ShellCompDirectiveNoFileComp))
}

// begin gives the command that begins a session, and shows the session until it
// ends unless it is to be left alone. Origin is said behind its id.
func (a *app) begin(ctx context.Context, f sessionFlags, command events.Command, origin string) error {
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ans, err := a.command(ctx, c, command)
	if err != nil {
		return err
	}
	if f.detach {
		return a.tell(ans, "%s", ans.Session)
	}
	if !a.flags.JSON {
		fmt.Fprintf(a.env.Stderr, "session %s%s\n", a.env.ErrStyle().Bold(string(ans.Session)), cli.Visible(origin))
	}
	return a.watchSession(ctx, c, log, session.State{ID: ans.Session}, ans.Seq, f.yes)
}
