package main

import "github.com/spf13/cobra"

func newWorkers(a *app) *cobra.Command {
	return a.lister(lister{use: "workers", short: "processes, and what they last said of themselves",
		long: `Workers asks the projector. Those that are there now: nats micro ls. A worker that
offers a tool otherwise than another one that runs is marked; see bus tools.`,
		none:    "no process has announced itself yet; bus up starts them",
		filters: "s",
		columns: []tableColumn{plain("WORKER", "worker"), plain("ROLE", "role"), plain("STATE", "state"), plain("HOST", "host"), plain("PID", "pid"),
			plain("STARTS", "starts"), timed("SINCE", "started_at"), {"NOTES", workerNotes}}})
}

// workerNotes is why a worker stopped, and which of its tools another offers
// otherwise.
func workerNotes(r row) string {
	if tools := r.text("differing"); tools != "" {
		return "DIFFERS from another worker's: " + tools
	}
	return r.text("reason")
}
