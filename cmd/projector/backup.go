package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/projection"
)

func newBackupCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "copy the database into a new file",
		Long: `Backup copies the database as it is at one moment into FILE, also while a
projector runs, and prints how many events are in it and the last sequence. It
never writes over a file. The name FILE appears when all of the copy is on the
disk; an end before leaves at most FILE.unfinished, which the next backup of that
name removes.

The copy is a database like any other: every subcommand takes it with --db, and a
projector that is started on it goes on from its last sequence.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.backup(cmd.Context(), args[0]) },
	}
}

func (p *program) backup(ctx context.Context, to string) error {
	if to == "" {
		return cli.Usage("backup takes the name of a new file")
	}
	cfg, _, err := p.load(slog.LevelWarn)
	if err != nil {
		return err
	}
	c, err := projection.Backup(ctx, path(cfg), to)
	if err != nil {
		return err
	}
	if p.flags.JSON {
		return cli.JSONLine(p.env.Stdout, c)
	}
	_, err = fmt.Fprintf(p.env.Stdout, "backed up %s into %s: %d events, last sequence %d\n", path(cfg), c.Path, c.Events, c.Last)
	return err
}
