package main

import "github.com/spf13/cobra"

func newWorkers(a *app) *cobra.Command {
	return a.lister("workers", "processes, and what they last said of themselves",
		"Workers asks the projector. Those that are there now: nats micro ls.",
		"no process has announced itself yet; bus up starts them",
		plain("WORKER", "worker"), plain("ROLE", "role"), plain("STATE", "state"), plain("HOST", "host"), plain("PID", "pid"),
		plain("STARTS", "starts"), timed("SINCE", "started_at"), plain("REASON", "reason"))
}
