package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/toolworker"
	"correx/pkg/sandbox"
)

func newRecoverCommand(p *program) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "recover",
		Short: "finish what a crashed worker left in its journal",
		Long: `Recover takes back what a crashed worker had begun, publishes the results that
it had not yet told, and ends. A worker that starts under the same name does so
by itself; use recover when it will not start again.

With --dry-run it only lists what the journals hold: of the worker called --name,
else of all on this machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dry {
				return p.list()
			}
			return p.recover(cmd)
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only list what there is")
	return c
}

func (p *program) recover(cmd *cobra.Command) error {
	cfg, logger, err := p.load(cli.Changed(cmd, nil), slog.LevelInfo)
	if err != nil {
		return err
	}
	if cfg.Worker.Name == "" {
		return cli.Usage("say --name; tool-worker recover --dry-run lists the workers of this machine")
	}
	o, err := options(cfg, logger)
	if err != nil {
		return err
	}
	defer o.Home.Close()
	return toolworker.Recover(cmd.Context(), o)
}

func (p *program) list() error {
	cfg, logger, err := p.load(cli.Changed(nil, nil), slog.LevelWarn)
	if err != nil {
		return err
	}
	all, err := toolworker.ListPending(cfg.State, cfg.Worker.Name, logger)
	if err != nil {
		return err
	}
	if p.flags.JSON {
		return json.NewEncoder(p.env.Stdout).Encode(all)
	}
	w := tabwriter.NewWriter(p.env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKER\tSESSION\tINVOCATION\tTOOL\tSTATE\tWHAT A START DOES")
	for _, worker := range all {
		if worker.InUse {
			fmt.Fprintf(w, "%s\t-\t-\t-\tin use\tit is running\n", worker.Worker)
		}
		for _, e := range worker.Entries {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", worker.Worker, e.Key.Session, e.Key.Invocation,
				p.env.OutText(e.Tool), e.State, remedy(e))
		}
	}
	return w.Flush()
}

func remedy(e sandbox.Entry) string {
	if e.State == sandbox.Result {
		return "publishes the result"
	}
	return "takes it back and reports a failure"
}
