package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"correx/pkg/events"
)

func newReplay(a *app) *cobra.Command {
	var f filter
	var from, through uint64
	var rerun string
	cmd := &cobra.Command{
		Use: "replay", Short: "facts that are stored, from the beginning",
		Long: `Replay prints stored facts in the order of the log. With --json it writes one
object a line: seq, time, subject, headers, body.

With plain NATS: nats sub 'evt.<session>.>' --all.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("rerun") {
				return a.rerun(cmd.Context(), events.SessionID(rerun))
			}
			return a.replay(cmd.Context(), f, from, through)
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&rerun, "rerun", "", "ask the models of this `session` again what they were asked, and say where the texts part")
	cmd.Flags().Uint64Var(&from, "from", 1, "begin at this sequence of EVENTS")
	cmd.Flags().Uint64Var(&through, "through", 0, "end at this sequence (default: the last one now)")
	for _, other := range []string{"session", "kind", "from", "through"} {
		cmd.MarkFlagsMutuallyExclusive("rerun", other)
	}
	return cmd
}

func (a *app) replay(ctx context.Context, f filter, from, through uint64) error {
	subject, err := f.subject()
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	log, err := c.openLog(ctx)
	if err != nil {
		return err
	}
	if through == 0 {
		if through, err = log.Last(ctx); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	if through == 0 {
		return nil
	}
	return log.Each(ctx, subject, from, through, func(r events.Record) error {
		return a.printRecord(r, f.session == "")
	})
}
