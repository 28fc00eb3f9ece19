package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// A Tool is one tool of a server.
type Tool struct {
	server      *server
	raw         string // as the server calls it
	name        string
	description string
	tier        events.Tier
	schema      events.Raw
	resolved    *jsonschema.Resolved
	repeatable  bool
}

func newTool(s *server, t *sdk.Tool) (*Tool, error) {
	if t.Name == "" || len(t.Name) > 256 {
		return nil, errors.New("its name is empty or longer than 256 bytes")
	}
	schema, resolved, err := simplify(t.InputSchema)
	if err != nil {
		return nil, err
	}
	description := t.Description
	if description == "" {
		description = t.Title
	}
	if description == "" {
		description = t.Name
	}
	return &Tool{
		server: s, raw: t.Name, name: events.Token(s.config.Name + "_" + t.Name), description: visible(description, 1<<10),
		tier: tierOf(t.Annotations, s.config), schema: schema, resolved: resolved, repeatable: repeatable(t.Annotations, s.config),
	}, nil
}

// Name implements [tools.Tool].
func (t *Tool) Name() string { return t.name }

// Description implements [tools.Tool].
func (t *Tool) Description() string { return t.description }

// Tier implements [tools.Tool].
func (t *Tool) Tier() events.Tier { return t.tier }

// Example implements [tools.Tool].
func (*Tool) Example() *events.ToolExample { return nil }

// ParametersSchema implements [tools.Tool].
func (t *Tool) ParametersSchema() events.Raw { return t.schema }

// Origin implements [tools.ForeignTool].
func (t *Tool) Origin() string { return "mcp:" + t.server.config.Name }

// NeedsDir implements [tools.DirTool].
func (*Tool) NeedsDir(events.ToolRequest) bool { return false }

// Repeatable implements [tools.RepeatableTool].
func (t *Tool) Repeatable() bool { return t.repeatable }

// RequiredCapabilities implements [tools.Tool]. What a process does is not known.
func (t *Tool) RequiredCapabilities() []events.ToolCapability {
	c := t.server.config
	switch {
	case c.URL != "":
		return []events.ToolCapability{events.NetworkAccess}
	case c.Network:
		return []events.ToolCapability{events.ProcessSpawn, events.FileWrite, events.NetworkAccess}
	}
	return []events.ToolCapability{events.ProcessSpawn, events.FileWrite}
}

// maxParameters is how large the parameters of one request may be, in bytes.
const maxParameters = 256 << 10

// ValidateRequest implements [tools.Tool].
func (t *Tool) ValidateRequest(r events.ToolRequest) tools.ValidationResult {
	if err := t.server.refusal(t.raw); err != nil {
		return tools.Invalid("%s: %v", t.name, err)
	}
	if len(r.Parameters) > maxParameters {
		return tools.Invalid("%s: parameters are %d bytes large, and %d are allowed", t.name, len(r.Parameters), maxParameters)
	}
	if err := r.Parameters.Object(); err != nil {
		return tools.Invalid("%s: parameters: the value %v", t.name, err)
	}
	var v any
	if err := json.Unmarshal(r.Parameters, &v); err != nil {
		return tools.Invalid("%s: parameters: %v", t.name, err)
	}
	if err := t.resolved.Validate(v); err != nil {
		return tools.Invalid("%s: parameters: %v", t.name, err)
	}
	return tools.Valid()
}

// Execute implements [tools.Executor]. A call is sent once.
func (t *Tool) Execute(ctx context.Context, r events.ToolRequest) tools.ToolResult {
	f := tools.Failure{
		Invocation: r.Invocation, Metadata: t.metadata(), Recoverable: true,
		Detail: tools.Detail{ExitCode: 1, Isolation: t.server.isolation(), Effects: events.EffectsNone},
	}
	ctx, cancel := context.WithTimeout(ctx, t.server.config.Timeout)
	defer cancel()
	l, err := t.server.connected(ctx)
	if err != nil {
		f.Reason = err.Error()
		return f
	}
	if err := t.server.refusal(t.raw); err != nil {
		f.Reason, f.Recoverable = fmt.Sprintf("%s: %v", t.name, err), false
		return f
	}
	f.Effects = events.EffectsUnknown
	if t.repeatable {
		f.Effects = events.EffectsNone
	}
	result, err := guarded(ctx, l, func() (*sdk.CallToolResult, error) {
		return l.session.CallTool(ctx, &sdk.CallToolParams{Name: t.raw, Arguments: json.RawMessage(r.Parameters)})
	})
	if err != nil {
		var why *stop
		err = t.server.explain(ctx, l, err)
		f.Reason = fmt.Sprintf("%s: %v", t.name, err)
		f.Recoverable = errors.As(err, &why) && why.recoverable
		return f
	}
	return t.result(result, f)
}

// result is what the server answered. A server's own failure is told to the model
// in the server's words.
func (t *Tool) result(r *sdk.CallToolResult, f tools.Failure) tools.ToolResult {
	if r.NeedsInput() {
		f.Reason, f.Recoverable = t.name+": the server asks for input that nobody gives it here", false
		return f
	}
	got := read(r)
	f.Structured, f.Overflow = got.structured, got.blobs
	if r.IsError {
		f.Reason, f.Output, f.Recoverable = got.output(), got.output(), false
		if f.Reason == "" {
			f.Reason = t.name + " failed, and its server does not say why"
		}
		return f
	}
	s := tools.Success{Invocation: f.Invocation, Output: got.output(), Metadata: f.Metadata, Detail: f.Detail}
	s.ExitCode, s.Effects = 0, ""
	return s
}

func (t *Tool) metadata() map[string]string {
	return map[string]string{"mcp_server": t.server.config.Name, "mcp_tool": visible(t.raw, 256)}
}
