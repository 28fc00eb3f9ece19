package main

import (
	"github.com/spf13/cobra"

	"correx/internal/cli"
)

// A program is what the subcommands share.
type program struct {
	env   cli.Env
	flags *cli.Flags
	name  string
}

func newRoot(env cli.Env) *cobra.Command {
	root := &cobra.Command{
		Use:     "model-worker",
		Short:   "run models in llama-server",
		Version: cli.Version,
		Long: `Model-worker offers the models that the configuration names, and answers what
is asked of them. Without a subcommand it runs. It starts, watches and ends its
llama-servers: one for each PERSISTENT model, and one in which all others take
turns. Workers on several machines share what is asked of a model.

Each worker has a name, and under it a directory with the pids of its
llama-servers: should one ever outlive its worker, the next start ends it.

Exit status: 0 done or stopped, 1 failed, 2 wrong usage, 130 interrupted.`,
		Args: cobra.NoArgs,
	}
	p := &program{env: env, flags: cli.NewFlags(env, root)}
	root.PersistentFlags().StringVar(&p.name, "name", "",
		"name of this worker (CORREX_WORKER_NAME; default the first free one of model-worker-1, model-worker-2, …)")
	run := newRunCommand(p)
	root.Flags().AddFlagSet(run.Flags())
	root.RunE = run.RunE
	root.AddCommand(run)
	return root
}
