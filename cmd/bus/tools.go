package main

import "github.com/spf13/cobra"

func newTools(a *app) *cobra.Command {
	return a.lister("tools", "tools that workers offer",
		"Tools asks the projector. A tool can be used while a worker runs that offers it.\nWhat a worker offers is configured: see correx.example.yaml.",
		"no worker offers a tool; turn one on in correx.yaml (see correx.example.yaml) and start tool-worker",
		plain("TOOL", "tool"), plain("TIER", "tier"), plain("USABLE", "available"), plain("WORKER", "worker"),
		plain("ISOLATION", "isolation"), plain("PREVIEWS", "previews"), plain("DESCRIPTION", "description"))
}
