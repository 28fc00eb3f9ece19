package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

func newApprovals(a *app) *cobra.Command {
	var long bool
	var r queryRequest
	cmd := &cobra.Command{
		Use: "approvals", Short: "what waits for a person",
		Long: `Approvals lists the questions that wait, by asking the projector; --long shows
each whole, as it would be approved, from the log. Answer with bus approve or bus
reject. --is granted, denied, expired, withdrawn or all lists what was answered, by
whom, and how long it had waited.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.approvals(cmd.Context(), r, long) },
	}
	cmd.Flags().BoolVarP(&long, "long", "l", false, "show each whole")
	filterFlags(cmd, "set", &r)
	return cmd
}

func (a *app) approvals(ctx context.Context, r queryRequest, long bool) error {
	past := r.State != "" && !strings.EqualFold(r.State, "pending")
	if past && long {
		return cli.Usage("--long shows what waits; leave out --is %s", r.State)
	}
	if err := r.times(time.Now()); err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	items, err := a.query(ctx, c, "approvals", r, 0)
	if err != nil {
		return err
	}
	if long && !a.flags.JSON {
		return a.cards(ctx, c, items)
	}
	if past {
		return a.list(items, "no question is like that",
			tableColumn{"INVOCATION", func(r row) string { return r.text("session") + "/" + r.text("invocation") }},
			plain("TOOL", "tool"), plain("TIER", "tier"), plain("STATUS", "status"), plain("BY", "answered_by"), plain("ACTOR", "answered_as"),
			timed("ANSWERED", "answered_at"), plain("WAITED (s)", "waited_s"), plain("REASON", "reason"))
	}
	return a.list(items, "nothing waits",
		tableColumn{"INVOCATION", func(r row) string { return r.text("session") + "/" + r.text("invocation") }},
		plain("TOOL", "tool"), plain("TIER", "tier"), plain("PARAMETERS", "parameters"),
		tableColumn{"LEFT", func(r row) string { return timeLeft(r.text("deadline")) }}, plain("WHY", "why"))
}

func timeLeft(deadline string) string {
	t, err := time.Parse(time.RFC3339Nano, deadline)
	if err != nil {
		return deadline
	}
	return time.Until(t).Round(time.Second).String()
}

// cards shows what waits, each from the log: what the projector says is a view.
func (a *app) cards(ctx context.Context, c *client, items []json.RawMessage) error {
	log, err := c.openLog(ctx)
	if err != nil {
		return err
	}
	for _, item := range items {
		r := rowOf(item)
		id := target{events.SessionID(r.text("session")), events.ToolInvocationID(r.text("invocation"))}
		i, err := invocation(ctx, log, id)
		if err != nil {
			return err
		}
		if i.Status() != session.ApprovalRequested {
			continue // answered meanwhile
		}
		card, err := cardOf(i)
		if err != nil {
			fmt.Fprintln(a.env.Stderr, cli.Visible(err.Error()))
			continue
		}
		fmt.Fprintln(a.env.Stdout, card.Render(a.env.OutStyle(), time.Now()))
	}
	return nil
}
