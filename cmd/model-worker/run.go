package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/config"
	"correx/internal/modelworker"
	"correx/internal/workerhome"
	"correx/pkg/events"
)

// runFlags are the flags that set a key of the configuration.
var runFlags = map[string]string{
	"ack-wait": "worker.ack_wait", "drain": "worker.drain", "llama-server": "llama_server.path",
}

func newRunCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "run",
		Short: "offer the models and answer what is asked of them (the default)",
		Long: `Run offers the models and answers what is asked of them, until SIGINT, SIGTERM
or a request to wrk.<worker>.drain. Then it takes nothing more, waits for what
runs, stops what takes longer than --drain, ends llama-server, and says on the
log that it stopped.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set := cli.Changed(cmd, runFlags)
			if p.name != "" {
				set["worker.name"] = config.Flag{Name: "--name", Value: p.name}
			}
			cfg, err := p.flags.Load(set)
			if err != nil {
				return err
			}
			logger, err := p.flags.Logger(slog.LevelInfo)
			if err != nil {
				return err
			}
			home, err := workerhome.Open(cfg.State, events.RoleModelWorker, cfg.Worker.Name)
			if err != nil {
				return err
			}
			defer home.Close()
			o := modelworker.FromConfig(cfg, home, logger)
			o.Version = cli.Version
			return modelworker.Run(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.String("llama-server", "", "the llama-server program (CORREX_LLAMA_SERVER; default the one on PATH)")
	f.Duration("ack-wait", 0, "how long a silent worker is believed to live; as the kernel made the consumers (CORREX_ACK_WAIT)")
	f.Duration("drain", 0, "how long to wait for what runs when stopping (CORREX_WORKER_DRAIN)")
	return c
}
