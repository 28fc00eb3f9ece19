package main

import (
	"github.com/spf13/cobra"

	"correx/pkg/events"
)

func newResume(a *app) *cobra.Command {
	return a.simple("resume", "let a session go on",
		"Resume lets a session go on that was paused, completed or failed, with new limits.", "goes on",
		func(id events.SessionID, reason string) events.Command {
			return events.SessionResume{Session: id, Reason: reason}
		})
}
