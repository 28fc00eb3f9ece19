package main

import "github.com/spf13/cobra"

func newSessions(a *app) *cobra.Command {
	return a.lister(lister{use: "sessions", short: "sessions, the newest first",
		long:    "Sessions asks the projector. With plain NATS: nats req query.sessions ''.",
		none:    "no session is like that; bus run \"<task>\" starts one",
		filters: "somxt",
		columns: []tableColumn{plain("SESSION", "session"), plain("STATE", "state"), timed("STARTED", "started_at"), plain("TURNS", "turns"),
			plain("CALLS", "tool_calls"), plain("TOKENS", "total_tokens"), plain("TASK", "task")}})
}
