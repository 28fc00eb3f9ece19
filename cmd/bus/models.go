package main

import "github.com/spf13/cobra"

func newModels(a *app) *cobra.Command {
	return a.lister("models", "models that workers offer, and whether they are loaded",
		"Models asks the projector.",
		"no worker offers a model; name one in correx.yaml (see correx.example.yaml) and start model-worker",
		plain("MODEL", "model"), plain("STATE", "state"), plain("USABLE", "available"), plain("WORKER", "worker"),
		plain("RESIDENCY", "residency_mode"), plain("CONTEXT", "context_size"), plain("REASON", "reason"))
}
