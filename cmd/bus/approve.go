package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

const approveHelp = `Approve permits tool invocations that wait. It shows what it permits, on stderr,
and sends the digest of exactly that, so that nothing else can run in its place.
Look before with bus approvals --long; with --digest it approves only what you
have seen there.

Several may be approved at once, but none of tier T3: each of those is to be
looked at by itself.`

// approveFlags are those of approve.
type approveFlags struct {
	scope, reason, digest string
}

func newApprove(a *app) *cobra.Command {
	var f approveFlags
	cmd := &cobra.Command{
		Use: "approve <invocation>...", Short: "permit what waits", Long: approveHelp,
		Example: "  bus approve s-4k2/t1-0\n  bus approve t1-0 --scope session",
		Args:    cli.Some("the invocation"), ValidArgsFunction: a.completeWaiting,
		RunE: func(cmd *cobra.Command, args []string) error { return a.approve(cmd.Context(), f, args) },
	}
	cmd.Flags().StringVar(&f.scope, "scope", "once", "once, or session: equal calls of the session run without a question for a time")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; it is on the log")
	cmd.Flags().StringVar(&f.digest, "digest", "", "approve only if this is the digest of what would be permitted")
	_ = cmd.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{"once", "session"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) approve(ctx context.Context, f approveFlags, args []string) error {
	scope := events.ApprovalScope(f.scope)
	if scope != events.ScopeOnce && scope != events.ScopeSession {
		return cli.Usage("scope is %q; use once or session", f.scope)
	}
	if f.digest != "" && len(args) > 1 {
		return cli.Usage("--digest is of one invocation; name one")
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	var all []session.Invocation
	for _, arg := range args {
		i, err := waiting(ctx, log, arg)
		if err != nil {
			return err
		}
		if len(args) > 1 && i.Asked.Tier >= events.T3 {
			return cli.Usage("%s is of tier %s; approve it by itself", arg, i.Asked.Tier)
		}
		all = append(all, i)
	}
	for _, i := range all {
		if err := a.permit(ctx, c, i, scope, f); err != nil {
			return err
		}
	}
	return nil
}

// permit shows one invocation and approves what it has shown.
func (a *app) permit(ctx context.Context, c *client, i session.Invocation, scope events.ApprovalScope, f approveFlags) error {
	card, err := cardOf(i)
	if err != nil {
		return err
	}
	fmt.Fprint(a.env.Stderr, card.Render(a.env.ErrStyle(), time.Now()))
	if f.digest != "" && f.digest != card.Digest {
		return fmt.Errorf("%s/%s: its digest is %s, not %s; nothing was approved", i.Session, i.ID, card.Digest, f.digest)
	}
	if scope == events.ScopeSession && card.ReviewOf != "" {
		return cli.Usage("%s/%s is the review of %s, and no answer to a review holds for another; approve it once", i.Session, i.ID, card.ReviewOf)
	}
	if scope == events.ScopeSession && !card.Whole() {
		return fmt.Errorf("%s/%s cannot be shown whole, so the answer cannot be remembered for the session; approve it once", i.Session, i.ID)
	}
	ans, err := a.command(ctx, c, events.ToolApprove{
		Session: i.Session, Invocation: i.ID, Digest: card.Digest, Scope: scope, Reason: f.reason,
	})
	if err != nil {
		return err
	}
	return a.tell(ans, "approved %s/%s", i.Session, i.ID)
}

// completeWaiting offers what waits.
func (a *app) completeWaiting(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	var ids []string
	if c, err := a.connect(ctx); err == nil {
		defer c.close()
		items, _ := a.query(ctx, c, "approvals", queryRequest{}, pageSize) // nothing to offer is no fault
		for _, item := range items {
			r := rowOf(item)
			ids = append(ids, cobra.CompletionWithDesc(r.text("session")+"/"+r.text("invocation"), cli.Line(r.text("tool"), 60)))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}
