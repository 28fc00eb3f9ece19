package main

import (
	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/pkg/events"
)

func newModels(a *app) *cobra.Command {
	cmd := a.lister(lister{use: "models", short: "models that workers offer, and whether they are loaded",
		long: `Models asks the projector. QUEUE is how many inferences of the model, on whatever
worker, were asked for and have not ended; what goes on at this moment on one
worker: nats req wrk.<worker>.models '' (or nats req '$SRV.STATS.model-worker' '').`,
		none: "no worker offers a model; name one in correx.yaml (see correx.example.yaml) and start model-worker",
		columns: []tableColumn{plain("MODEL", "model"), plain("STATE", "state"), plain("USABLE", "available"), plain("QUEUE", "queue"),
			plain("WORKER", "worker"), plain("RESIDENCY", "residency_mode"), plain("CONTEXT", "context_size"), plain("REASON", "reason")}})
	cmd.AddCommand(newModelsLoad(a), newModelsUnload(a))
	return cmd
}

func newModelsLoad(a *app) *cobra.Command {
	var worker string
	cmd := &cobra.Command{
		Use: "load <model>", Short: "wish a model into memory", Args: cli.Args("the model"),
		Long: "Load puts the wish on the log; bus tail --kind model shows what comes of it. A model\nthat is asked for is loaded by itself.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.one(cmd, events.ModelLoad{Model: events.ModelID(args[0]), Worker: events.WorkerID(worker)}, args[0]+" is to be loaded")
		},
	}
	cmd.Flags().StringVar(&worker, "worker", "", "on this worker only")
	return cmd
}

func newModelsUnload(a *app) *cobra.Command {
	var worker string
	var force bool
	cmd := &cobra.Command{
		Use: "unload <model>", Short: "wish a model out of memory", Args: cli.Args("the model"),
		Long: "Unload waits for what the model is answering, unless --force.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.one(cmd, events.ModelUnload{
				Model: events.ModelID(args[0]), Worker: events.WorkerID(worker), Force: force,
			}, args[0]+" is to be unloaded")
		},
	}
	cmd.Flags().StringVar(&worker, "worker", "", "on this worker only")
	cmd.Flags().BoolVar(&force, "force", false, "do not wait for what is in flight")
	return cmd
}
