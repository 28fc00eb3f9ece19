package main

import (
	"context"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/pkg/events"
)

func newReject(a *app) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "reject <invocation>...", Short: "say no to what waits",
		Long: "Reject says no. The session goes on, and its model is told the reason.",
		Args: cli.Some("the invocation"), ValidArgsFunction: a.completeWaiting,
		RunE: func(cmd *cobra.Command, args []string) error { return a.reject(cmd.Context(), args, reason) },
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the model is told, and it is on the log")
	return cmd
}

func (a *app) reject(ctx context.Context, args []string, reason string) error {
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	for _, arg := range args {
		i, err := waiting(ctx, log, arg)
		if err != nil {
			return err
		}
		ans, err := a.command(ctx, c, events.ToolReject{Session: i.Session, Invocation: i.ID, Reason: reason})
		if err != nil {
			return err
		}
		if err := a.tell(ans, "rejected %s/%s", i.Session, i.ID); err != nil {
			return err
		}
	}
	return nil
}
