package main

import "github.com/spf13/cobra"

func newInvocations(a *app) *cobra.Command {
	return a.lister(lister{use: "invocations", short: "tool calls of all sessions, the newest first",
		long:    "Invocations asks the projector. bus show <session> has the whole story of a call.",
		none:    "no call is like that",
		filters: "eot",
		columns: []tableColumn{{"INVOCATION", func(r row) string { return r.text("session") + "/" + r.text("invocation") }},
			plain("TOOL", "tool"), plain("STATUS", "status"), plain("TIER", "tier"), timed("ASKED", "requested_at"),
			plain("WORKER", "worker"), plain("PARAMETERS", "parameters"), plain("REASON", "reason")}})
}

func newCommands(a *app) *cobra.Command {
	return a.lister(lister{use: "commands", short: "commands, and what came of them, the newest first",
		long:    "Commands asks the projector; --is rejected shows those that were refused, with the reasons.",
		none:    "no command is like that",
		filters: "st",
		columns: []tableColumn{plain("COMMAND", "command"), plain("STATUS", "status"), plain("ACTOR", "actor"), timed("TIME", "time"),
			plain("SESSION", "session"), plain("FIRST FACT", "fact"), plain("REASONS", "reasons")}})
}
