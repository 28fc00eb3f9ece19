package main

import (
	"github.com/spf13/cobra"

	"correx/pkg/events"
)

func newPause(a *app) *cobra.Command {
	return a.simple("pause", "stop a session between its steps",
		"Pause lets what is at work end, and begins nothing more until bus resume.", "pauses",
		func(id events.SessionID, reason string) events.Command {
			return events.SessionPause{Session: id, Reason: reason}
		})
}
