package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"correx/internal/auditor"
	"correx/internal/cli"
	"correx/internal/projection"
	"correx/internal/signedlog"
)

func newVerifyCommand(p *program) *cobra.Command {
	var views bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "hold the database against the stream, record by record",
		Long: `Verify reads the database beside the stream and names the first record that the two
do not have alike. With --views it also projects the log anew into a temporary file
and compares every row of every table; a projector that runs must be stopped first.

Whether the stream itself is what it was, bus audit verify says.

Exit status: 0 they are alike, 1 they are not.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.verify(cmd.Context(), views) },
	}
	c.Flags().BoolVar(&views, "views", false, "compare all tables with a fresh projection")
	return c
}

// A verified says what was found, with --json.
type verified struct {
	OK bool `json:"ok"`
	auditor.Result
	Views *projection.Difference `json:"views,omitempty"`
}

func (p *program) verify(ctx context.Context, views bool) error {
	cfg, logger, err := p.load(slog.LevelWarn)
	if err != nil {
		return err
	}
	if views {
		lock, err := projection.Acquire(path(cfg))
		if err != nil {
			return err
		}
		defer lock.Release() // the process's end would do as well
	}
	nc, log, err := dial(ctx, cfg, "projector-verify", logger, signedlog.Open)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	stream, err := auditor.OpenStream(ctx, js, log.Identity().Stream)
	if err != nil {
		return err
	}
	var v verified
	if v.Result, err = p.compare(ctx, stream, path(cfg)); err != nil {
		return err
	}
	if views && v.Result.OK() {
		if v.Views, err = p.compareViews(ctx, path(cfg), identity(log), log); err != nil {
			return err
		}
	}
	v.OK = v.Result.OK() && v.Views == nil
	return p.verdict(v, views)
}

func (p *program) compare(ctx context.Context, stream *auditor.Stream, path string) (auditor.Result, error) {
	db, err := projection.OpenReadOnly(ctx, path)
	if err != nil {
		return auditor.Result{}, err
	}
	snap, err := db.Snapshot(ctx)
	if err != nil {
		return auditor.Result{}, errors.Join(err, db.Close())
	}
	progress := p.env.Progress("comparing with the stream")
	r, err := auditor.Compare(ctx, stream, auditor.OfDatabase(snap), func(done, last uint64) {
		progress.Say(fmt.Sprintf("comparing with the stream: %d of %d records (%d %%)", done, last, 100*done/last))
	})
	progress.Stop()
	return r, errors.Join(err, snap.Close(), db.Close())
}

// compareViews projects the log anew, up to where the database is, and returns the
// first difference.
func (p *program) compareViews(ctx context.Context, path string, id projection.Identity, log projection.Log) (*projection.Difference, error) {
	dir, err := os.MkdirTemp("", "correx-verify-")
	if err != nil {
		return nil, fmt.Errorf("verify views: %w", err)
	}
	defer os.RemoveAll(dir)
	progress := p.env.Progress("projecting the log anew")
	defer progress.Stop()
	d, err := projection.Verify(ctx, path, dir, id, log, func(done, last uint64) {
		progress.Say(fmt.Sprintf("projecting the log anew: %d of %d records (%d %%)", done, last, 100*done/last))
	})
	if err != nil {
		return nil, fmt.Errorf("verify views: %w", err)
	}
	return d, nil
}

// errDiffers is the error of a database that is not the stream's.
var errDiffers = errors.New("the database is not that of the stream")

func (p *program) verdict(v verified, views bool) error {
	if p.flags.JSON {
		if err := cli.JSON(p.env.Stdout, v); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(p.env.Stdout, "stream   %s of %s\nrecords  %d\nchain    %s\nroot     %s\n",
			cli.Visible(v.Stream), v.Created, v.Through, v.Chain, v.Root)
		for _, f := range v.Findings {
			fmt.Fprintf(p.env.Stdout, "%s\n", cli.Visible(f.String()))
		}
		switch {
		case v.Views != nil:
			fmt.Fprintf(p.env.Stdout, "table %s differs\nthe database has  %s\nthe log makes     %s\n",
				cli.Visible(v.Views.Table), cli.Visible(v.Views.Have), cli.Visible(v.Views.Want))
		case v.OK && views:
			fmt.Fprintln(p.env.Stdout, "every record and every row of every table is that of the stream")
		case v.OK:
			fmt.Fprintln(p.env.Stdout, "every record is that of the stream")
		}
	}
	if !v.OK {
		return errDiffers
	}
	return nil
}
