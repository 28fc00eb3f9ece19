package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/projection"
	"correx/internal/signedlog"
)

func newRebuildCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild",
		Short: "make the database anew from the log",
		Long: `Rebuild projects the whole log into a new file and then puts it in the old one's
place. The old file stays as it is until then. A projector that runs must be
stopped first; give --db to write another file beside it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.rebuild(cmd.Context()) },
	}
}

// A rebuilt says what a rebuild has done, with --json.
type rebuilt struct {
	Path    string `json:"path"`
	Records uint64 `json:"records"`
	Millis  int64  `json:"duration_ms"`
}

func (p *program) rebuild(ctx context.Context) error {
	cfg, logger, err := p.load(slog.LevelWarn)
	if err != nil {
		return err
	}
	nc, log, err := dial(ctx, cfg, "projector-rebuild", logger, signedlog.Open)
	if err != nil {
		return err
	}
	defer nc.Close()
	// It makes much garbage and keeps little: memory is cheaper here than time.
	defer debug.SetGCPercent(debug.SetGCPercent(300))
	start, records := time.Now(), uint64(0)
	progress := p.env.Progress("projecting the log")
	err = projection.Rebuild(ctx, path(cfg), identity(log), log, func(done, last uint64) {
		records = done
		progress.Say(fmt.Sprintf("projecting the log: %d of %d records (%d %%)", done, last, 100*done/last))
	})
	progress.Stop()
	if err != nil {
		return err
	}
	took := time.Since(start)
	if p.flags.JSON {
		return cli.JSONLine(p.env.Stdout, rebuilt{path(cfg), records, took.Milliseconds()})
	}
	_, err = fmt.Fprintf(p.env.Stdout, "rebuilt %s: %d records in %s\n", path(cfg), records, took.Round(time.Millisecond))
	return err
}
