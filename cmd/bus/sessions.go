package main

import "github.com/spf13/cobra"

func newSessions(a *app) *cobra.Command {
	return a.lister("sessions", "sessions, the newest first",
		"Sessions asks the projector. With plain NATS: nats req query.sessions ''.",
		"no session yet; bus run \"<task>\" starts one",
		plain("SESSION", "session"), plain("STATE", "state"), timed("STARTED", "started_at"), plain("TURNS", "turns"),
		plain("CALLS", "tool_calls"), plain("TOKENS", "total_tokens"), plain("TASK", "task"))
}
