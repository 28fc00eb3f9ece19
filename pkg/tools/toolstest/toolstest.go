// Package toolstest has tools for tests: one that accepts, one that refuses and
// one that may never run.
package toolstest

import (
	"context"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// described is what the three have in common.
type described struct {
	name string
	tier events.Tier
}

func (d described) Name() string                                { return d.name }
func (d described) Description() string                         { return "A tool for tests." }
func (d described) Tier() events.Tier                           { return d.tier }
func (described) RequiredCapabilities() []events.ToolCapability { return nil }
func (described) ParametersSchema() events.Raw                  { return events.Raw(`{"type":"object"}`) }
func (described) Example() *events.ToolExample                  { return nil }

// EchoTool is T0, finds every request valid, and answers with its parameters.
type EchoTool struct{ described }

// NewEchoTool returns an EchoTool called "echo".
func NewEchoTool() EchoTool { return EchoTool{described{"echo", events.T0}} }

// ValidateRequest implements tools.Tool.
func (EchoTool) ValidateRequest(events.ToolRequest) tools.ValidationResult { return tools.Valid() }

// Execute implements tools.Executor.
func (EchoTool) Execute(_ context.Context, r events.ToolRequest) tools.ToolResult {
	return tools.Success{Invocation: r.Invocation, Output: r.Parameters.String()}
}

// FailingTool is T2 and finds every request invalid.
type FailingTool struct{ described }

// NewFailingTool returns a FailingTool called "failing".
func NewFailingTool() FailingTool { return FailingTool{described{"failing", events.T2}} }

// ValidateRequest implements tools.Tool.
func (FailingTool) ValidateRequest(events.ToolRequest) tools.ValidationResult {
	return tools.Invalid("simulated validation failure")
}

// RejectedTool is T4 and finds every request valid.
type RejectedTool struct{ described }

// NewRejectedTool returns a RejectedTool called "rejected".
func NewRejectedTool() RejectedTool { return RejectedTool{described{"rejected", events.T4}} }

// ValidateRequest implements tools.Tool.
func (RejectedTool) ValidateRequest(events.ToolRequest) tools.ValidationResult { return tools.Valid() }
