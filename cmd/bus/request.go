package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// requestFlags are those of request.
type requestFlags struct {
	session, invocation, stage, tier string
	detach, yes                      bool
}

func newRequest(a *app) *cobra.Command {
	var f requestFlags
	cmd := &cobra.Command{
		Use: "request <tool> <parameters>", Short: "run a tool with no model at all",
		Long: `Request asks for a tool, shows what happens, asks for an approval if one is
needed, and prints what the tool answered. Parameters are a JSON object; "-" reads
them from stdin.

Exit status: 0 it completed, 1 it failed or was rejected, 4 an approval was denied
or expired.`,
		Example: "  bus request echo '{\"text\":\"hello\"}'\n  bus request shell '{\"argv\":[\"ls\",\"-l\"]}'",
		Args:    cli.Args("the tool", "the JSON object of its parameters"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.request(cmd.Context(), f, args[0], args[1]) },
	}
	cmd.Flags().StringVar(&f.session, "session", "", "session that it belongs to (default: none)")
	cmd.Flags().StringVar(&f.invocation, "invocation", "", "id of the invocation (default: the kernel gives one)")
	cmd.Flags().StringVar(&f.stage, "stage", "", "what to call the occasion")
	cmd.Flags().StringVar(&f.tier, "tier", "", "treat it as of this tier, if that is higher than the tool's: T0 to T4")
	cmd.Flags().BoolVar(&f.detach, "detach", false, "print the invocation's id and do not wait")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "approve it if that is asked (YES=1)")
	return cmd
}

func (a *app) request(ctx context.Context, f requestFlags, tool, parameters string) error {
	text, err := a.text(parameters)
	if err != nil {
		return err
	}
	want := events.ToolRun{
		Tool: tool, Parameters: events.Raw(text), Session: events.SessionID(f.session),
		Invocation: events.ToolInvocationID(f.invocation), Stage: events.StageID(f.stage),
	}
	if f.tier != "" {
		if err := want.Tier.UnmarshalText([]byte(f.tier)); err != nil {
			return cli.Usage("%w", err)
		}
	}
	if faults := want.Check(); len(faults) > 0 {
		return cli.Usage("%s", strings.Join(faults, "; "))
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ans, err := a.command(ctx, c, want)
	if err != nil {
		return err
	}
	if f.detach {
		return a.tell(ans, "%s/%s", ans.Session, ans.Invocation)
	}
	return a.watchInvocation(ctx, c, log, ans, f.yes)
}

// watchInvocation shows one invocation, and its follow-up if it has one, until
// they end, and prints what they came to.
func (a *app) watchInvocation(ctx context.Context, c *client, log *eventlog.Log, ans answer, yes bool) error {
	state, filter := session.State{ID: ans.Session}, events.KindFilter(ans.Session, events.KindTool)
	if ans.Session != events.System {
		filter = events.SessionFilter(ans.Session)
		var err error
		if state, err = fold(ctx, log, ans.Session, ans.Seq-1); err != nil {
			return err
		}
	}
	first, next := ans.Invocation, session.FollowUpID(ans.Invocation)
	w := &watcher{app: a, client: c, yes: a.yes(yes), state: state, shows: func(of events.Aggregate) bool {
		return of.Kind == events.KindTool && (of.ID == string(first) || of.ID == string(next))
	}}
	state, err := w.watch(ctx, log, filter, ans.Seq, func(s session.State, _ events.Record) bool {
		i, _ := s.Tool(first)
		if i.End == nil || i.FollowUp() == nil {
			return i.End != nil
		}
		review, _ := s.Tool(next)
		return review.End != nil || review.Requested == nil && ended(s)
	})
	if err != nil {
		return err
	}
	done, _ := state.Tool(first)
	err = a.result(done)
	if review, ok := state.Tool(next); ok && done.FollowUp() != nil {
		return a.result(review)
	}
	return err
}

// result prints what an invocation came to.
func (a *app) result(i session.Invocation) error {
	switch end := i.End.(type) {
	case events.ToolExecutionCompleted:
		if !a.flags.JSON && end.Receipt.Output != "" {
			fmt.Fprintln(a.env.Stdout, strings.TrimSuffix(a.env.OutText(end.Receipt.Output), "\n"))
		}
		return nil
	case events.ToolExecutionRejected:
		if end.Denied || end.Expired {
			return cli.Exit(statusDenied, nil)
		}
	}
	return cli.Exit(cli.StatusFailed, nil) // the story has said why
}
