package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/toolworker"
)

func newRunCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "offer the tools and run what was approved (the default)",
		Long: `Run offers the tools and runs what was approved, until SIGINT, SIGTERM or a
request to wrk.<worker>.drain. Then it takes nothing more, waits for what runs,
stops what takes longer than --drain, and says on the log that it stopped.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, logger, err := p.load(cli.Changed(cmd, workerFlags), slog.LevelInfo)
			if err != nil {
				return err
			}
			o, err := options(cfg, logger)
			if err != nil {
				return err
			}
			defer o.Home.Close()
			return toolworker.Run(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.Int("concurrency", 0, "invocations at a time (CORREX_WORKER_CONCURRENCY)")
	f.Duration("ack-wait", 0, "how long a silent worker is believed to live; as the kernel made the consumers (CORREX_ACK_WAIT)")
	f.Duration("drain", 0, "how long to wait for what runs when stopping (CORREX_WORKER_DRAIN)")
	return c
}
