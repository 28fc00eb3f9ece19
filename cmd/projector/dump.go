package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"correx/internal/projection"
)

func newDumpCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "dump",
		Short: "print every column of every table",
		Long: `Dump prints the whole database as text: a heading for each table, a JSON object
for each row, ordered by primary key. Two databases of the same log are equal in
it, byte for byte. It reads one snapshot, also while a projector runs. With
--json each line is an object with the keys table and row.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.dump(cmd.Context()) },
	}
}

func (p *program) dump(ctx context.Context) error {
	cfg, _, err := p.load(slog.LevelWarn)
	if err != nil {
		return err
	}
	db, err := projection.OpenReadOnly(ctx, path(cfg))
	if err != nil {
		return err
	}
	write := db.Dump
	if p.flags.JSON {
		write = db.DumpJSON
	}
	return errors.Join(write(ctx, p.env.Stdout), db.Close())
}
