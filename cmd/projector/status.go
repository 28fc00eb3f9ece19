package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/config"
	"correx/internal/projection"
	"correx/internal/signedlog"
)

func newStatusCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "say how far the database is behind the log",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return p.status(cmd.Context()) },
	}
}

// A status is what the command prints, with --json.
type status struct {
	projection.Status
	Running bool   `json:"running"`        // a projector writes the database
	Note    string `json:"note,omitempty"` // why Last is not the stream's
}

func (p *program) status(ctx context.Context) error {
	cfg, logger, err := p.load(slog.LevelError)
	if err != nil {
		return err
	}
	db, err := projection.OpenReadOnly(ctx, path(cfg))
	if err != nil {
		return err
	}
	s := status{Running: projection.Locked(path(cfg))}
	last, err := lastOf(ctx, cfg, db.Identity(), logger)
	if err != nil {
		s.Note = err.Error()
	}
	s.Status, err = projection.StatusOf(ctx, db, last)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if p.flags.JSON {
		return cli.JSON(p.env.Stdout, s)
	}
	p.print(s)
	return nil
}

// lastOf asks the stream for its end, but not for long: the database can be
// looked at without a server.
func lastOf(ctx context.Context, cfg config.Config, id projection.Identity, logger *slog.Logger) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	nc, log, err := dial(ctx, cfg, "projector-status", logger, signedlog.Open)
	if err != nil {
		return 0, fmt.Errorf("the log cannot be asked: %w", err)
	}
	defer nc.Close()
	if got := identity(log); got.Stream != id.Stream || !got.Created.Equal(id.Created) {
		return 0, fmt.Errorf("the log is %s, the database of %s", got, id)
	}
	return log.Last(ctx)
}

func (p *program) print(s status) {
	state := "no projector runs"
	if s.Running {
		state = "a projector runs"
	}
	behind := strconv.FormatUint(s.Lag, 10)
	if s.Note != "" {
		behind = "unknown: " + cli.Visible(s.Note)
	}
	fmt.Fprintf(p.env.Stdout, "database  %s (%s, schema %s)\nstream    %s of %s\napplied   %d\nbehind    %s\nalarms    %d\n",
		s.Path, state, s.Schema, s.Stream, s.Created, s.Applied, behind, s.Alarms)
}
