package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/config"
	"correx/internal/projection"
)

// A program is what the subcommands share.
type program struct {
	env   cli.Env
	flags *cli.Flags
	db    string
}

func newRoot(env cli.Env) *cobra.Command {
	run := &cobra.Command{
		Use:     "projector",
		Short:   "keep a SQLite view of the log",
		Version: cli.Version,
		Long: `Projector follows the log into a SQLite file, which any SQLite tool may open
meanwhile, and answers query.<noun> requests. Without a subcommand it runs.

The log is the store and the file a view of it: delete it, and the next start
makes it anew. docs/sqlite.md describes the tables.

Exit status: 0 done or stopped, 1 failed, 2 wrong usage, 130 interrupted.`,
		Args: cobra.NoArgs,
	}
	p := &program{env: env, flags: cli.NewFlags(env, run)}
	run.PersistentFlags().StringVar(&p.db, "db", "", "SQLite file (CORREX_PROJECTOR_DB; default correx.db in the state directory)")
	_ = run.MarkPersistentFlagFilename("db")
	sub := newRunCommand(p)
	run.Flags().AddFlagSet(sub.Flags())
	run.RunE = sub.RunE
	run.AddCommand(sub, newRebuildCommand(p), newBackupCommand(p), newDumpCommand(p), newStatusCommand(p), newVerifyCommand(p))
	return run
}

// load reads the configuration and makes the logger.
func (p *program) load(level slog.Level) (config.Config, *slog.Logger, error) {
	set := map[string]config.Flag{}
	if p.db != "" {
		set["projector.db"] = config.Flag{Name: "--db", Value: p.db}
	}
	cfg, err := p.flags.Load(set)
	if err != nil {
		return cfg, nil, err
	}
	logger, err := p.flags.Logger(level)
	return cfg, logger, err
}

// path is where the database is.
func path(cfg config.Config) string {
	if cfg.Projector.DB != "" {
		return cfg.Projector.DB
	}
	return projection.DefaultPath(cfg.State)
}
