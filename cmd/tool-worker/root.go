package main

import (
	"log/slog"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/config"
	"correx/internal/toolworker"
	"correx/internal/workerhome"
	"correx/pkg/events"
	"correx/pkg/sandbox"
)

// A program is what the subcommands share.
type program struct {
	env   cli.Env
	flags *cli.Flags
	name  string
}

func newRoot(env cli.Env) *cobra.Command {
	root := &cobra.Command{
		Use:     "tool-worker",
		Short:   "run tools that were approved, in a sandbox",
		Version: cli.Version,
		Long: `Tool-worker offers the tools that the configuration enables, and runs what was
approved for them. Without a subcommand it runs. Start several to share the work.

Each worker has a name, and under it a directory with its journal: what a crash
left half done is taken back, and reported, when the worker of that name starts
again.

Exit status: 0 done or stopped, 1 failed, 2 wrong usage, 130 interrupted.`,
		Args: cobra.NoArgs,
	}
	p := &program{env: env, flags: cli.NewFlags(env, root)}
	root.PersistentFlags().StringVar(&p.name, "name", "",
		"name of this worker (CORREX_WORKER_NAME; default the first free one of tool-worker-1, tool-worker-2, …)")
	run := newRunCommand(p)
	root.Flags().AddFlagSet(run.Flags())
	root.RunE = run.RunE
	root.AddCommand(run, newRecoverCommand(p), newProbeCommand(p))
	return root
}

// workerFlags are the flags that set a key of the configuration.
var workerFlags = map[string]string{
	"concurrency": "worker.concurrency", "ack-wait": "worker.ack_wait", "drain": "worker.drain",
}

// load reads the configuration and makes the logger.
func (p *program) load(set map[string]config.Flag, level slog.Level) (config.Config, *slog.Logger, error) {
	if p.name != "" {
		set["worker.name"] = config.Flag{Name: "--name", Value: p.name}
	}
	cfg, err := p.flags.Load(set)
	if err != nil {
		return cfg, nil, err
	}
	logger, err := p.flags.Logger(level)
	return cfg, logger, err
}

// options takes the worker's name and builds its tools. The caller closes the
// home.
func options(cfg config.Config, logger *slog.Logger) (toolworker.Options, error) {
	home, err := workerhome.Open(cfg.State, events.RoleToolWorker, cfg.Worker.Name)
	if err != nil {
		return toolworker.Options{}, err
	}
	o, err := build(cfg, home, logger)
	if err != nil {
		home.Close()
		return toolworker.Options{}, err
	}
	o.Version = cli.Version
	return o, nil
}

func build(cfg config.Config, home *workerhome.Home, logger *slog.Logger) (toolworker.Options, error) {
	runner, err := sandbox.NewRunner(toolworker.RunnerOptions(cfg, home))
	if err != nil {
		return toolworker.Options{}, err
	}
	return toolworker.FromConfig(cfg, home, runner, logger)
}
