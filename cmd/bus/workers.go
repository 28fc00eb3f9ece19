package main

import "github.com/spf13/cobra"

func newWorkers(a *app) *cobra.Command {
	return a.lister("workers", "processes, and what they last said of themselves",
		`Workers asks the projector. Those that are there now: nats micro ls. A worker that
offers a tool otherwise than another one that runs is marked; see bus tools.`,
		"no process has announced itself yet; bus up starts them",
		plain("WORKER", "worker"), plain("ROLE", "role"), plain("STATE", "state"), plain("HOST", "host"), plain("PID", "pid"),
		plain("STARTS", "starts"), timed("SINCE", "started_at"), tableColumn{"NOTES", workerNotes})
}

// workerNotes is why a worker stopped, and which of its tools another offers
// otherwise.
func workerNotes(r row) string {
	if tools := r.text("differing"); tools != "" {
		return "DIFFERS from another worker's: " + tools
	}
	return r.text("reason")
}
