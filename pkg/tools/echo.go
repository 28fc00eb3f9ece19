package tools

import (
	"context"
	"fmt"

	"correx/pkg/events"
)

// An EchoTool answers with the text that it was given, or with a fixed reply. It
// touches nothing, which makes it the tool to measure and test with.
type EchoTool struct {
	tier  events.Tier
	reply string
}

func newEcho(c EchoConfig) (*EchoTool, error) {
	if !c.Tier.Valid() {
		return nil, fmt.Errorf("tier %d is not one of T0 to T4", c.Tier)
	}
	return &EchoTool{tier: c.Tier, reply: c.Reply}, nil
}

// Name implements [Tool].
func (*EchoTool) Name() string { return "echo" }

// Description implements [Tool].
func (*EchoTool) Description() string { return "Answers with the text that it is given." }

// Tier implements [Tool].
func (t *EchoTool) Tier() events.Tier { return t.tier }

// RequiredCapabilities implements [Tool].
func (*EchoTool) RequiredCapabilities() []events.ToolCapability { return nil }

// ParametersSchema implements [Tool].
func (*EchoTool) ParametersSchema() events.Raw { return echoSchema }

// Example implements [Tool].
func (t *EchoTool) Example() *events.ToolExample {
	result := "good morning"
	if t.reply != "" {
		result = t.reply
	}
	return &events.ToolExample{
		Task:       "Echo the words good morning.",
		Parameters: events.Raw(`{"text":"good morning"}`),
		Result:     result,
		Answer:     "The tool answered: " + result,
	}
}

type echoParameters struct {
	Text *string `json:"text"`
}

// ValidateRequest implements [Tool].
func (*EchoTool) ValidateRequest(r events.ToolRequest) ValidationResult {
	var p echoParameters
	if err := decode(r, &p); err != nil {
		return Invalid("echo: %v", err)
	}
	if p.Text == nil {
		return Invalid("echo: text is missing")
	}
	return Valid()
}

// Execute implements [Executor].
func (t *EchoTool) Execute(_ context.Context, r events.ToolRequest) ToolResult {
	var p echoParameters
	if err := decode(r, &p); err != nil || p.Text == nil {
		return fail(r, "echo: text is missing")
	}
	if t.reply != "" {
		return Success{Invocation: r.Invocation, Output: t.reply}
	}
	return Success{Invocation: r.Invocation, Output: *p.Text}
}
