package mcp

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"correx/pkg/events"
)

// tierOf is how dangerous a tool is. A server that is not trusted may only make
// it worse than what is configured.
func tierOf(a *sdk.ToolAnnotations, c Server) events.Tier {
	floor := events.T3
	if c.Trust {
		floor = events.T0
	}
	if c.Tier != nil {
		floor = *c.Tier
	}
	said, explicit := annotated(a)
	if c.Trust || explicit {
		return max(floor, said)
	}
	return floor
}

// annotated is the tier that a server claims for a tool, and whether it says
// anything at all. Silence is T3.
func annotated(a *sdk.ToolAnnotations) (t events.Tier, explicit bool) {
	switch {
	case a == nil:
		return events.T3, false
	case a.ReadOnlyHint && a.OpenWorldHint != nil && !*a.OpenWorldHint:
		return events.T0, true
	case a.ReadOnlyHint:
		return events.T1, true
	case a.DestructiveHint == nil:
		return events.T3, false
	case *a.DestructiveHint:
		return events.T3, true
	}
	return events.T2, true
}

// repeatable reports whether a call may run again after its worker was lost.
func repeatable(a *sdk.ToolAnnotations, c Server) bool {
	return c.Trust && a != nil && a.ReadOnlyHint && a.IdempotentHint
}
