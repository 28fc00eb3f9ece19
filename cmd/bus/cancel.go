package main

import (
	"strings"

	"github.com/spf13/cobra"

	"correx/pkg/events"
)

func newCancel(a *app) *cobra.Command {
	cmd := a.simple("cancel", "end a session, or one tool invocation",
		"Cancel ends a session for good: what runs is stopped. Of <session>/<invocation> it\nstops that invocation alone; the session of one that has none is called system.", "is to end",
		func(id events.SessionID, reason string) events.Command {
			if s, i, ok := strings.Cut(string(id), "/"); ok {
				return events.ToolCancel{Session: events.SessionID(s), Invocation: events.ToolInvocationID(i), Reason: reason}
			}
			return events.SessionCancel{Session: id, Reason: reason}
		})
	cmd.Use = "cancel <session>[/<invocation>]"
	return cmd
}
