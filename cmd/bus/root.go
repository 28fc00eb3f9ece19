package main

import (
	"github.com/spf13/cobra"

	"correx/internal/cli"
)

// An app is one run of bus: its surroundings and the flags that all subcommands
// share.
type app struct {
	env   cli.Env
	flags *cli.Flags
	actor string
}

const rootHelp = `Bus runs agents on local models so that every wish, permission, deed and result
is a message on a log. Nothing acts without a message, and the log alone says
what happened.

    bus up                          start everything on this machine
    bus run "<task>"                give an agent a task and watch it
    bus approvals                   what waits for a person
    bus show <session>              what happened, step by step

Everything here can be done with the nats program as well: eval "$(bus env)".

Exit status: 0 done, 1 failed, 2 wrong arguments, 130 interrupted; bus run has
two more.`

// newRoot builds the command; one file a subcommand.
func newRoot(env cli.Env) *cobra.Command {
	root := cli.Group("bus", "agents on local models, with a log of everything", rootHelp)
	root.Version = cli.Version
	a := &app{env: env, flags: cli.NewFlags(env, root)}
	root.PersistentFlags().StringVar(&a.actor, "actor", "operator", "in whose name commands are given")
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Running:"},
		&cobra.Group{ID: "work", Title: "Working with agents:"},
		&cobra.Group{ID: "see", Title: "Looking:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("run", newUp(a), newServe(a), newStreams(a), newEnv(a))
	add("work", newRun(a), newSay(a), newFork(a), newPause(a), newResume(a), newCancel(a),
		newApprove(a), newReject(a), newRequest(a), newInfer(a))
	add("see", newSessions(a), newInvocations(a), newCommands(a), newSearch(a), newShow(a), newApprovals(a), newDiff(a), newTail(a), newReplay(a),
		newWorkers(a), newTools(a), newModels(a), newSchema(a), newAudit(a))
	return root
}
