package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"correx/pkg/events"
)

// A Registry finds tools by name. It never changes.
type Registry struct {
	byName map[string]Tool
	all    []Tool
}

// NewRegistry holds the tools in the order given. Two tools of one name, or of
// one subject token, are an error, and so is a tool without a name.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{byName: make(map[string]Tool, len(tools)), all: slices.Clone(tools)}
	tokens := make(map[string]string, len(tools))
	var faults []error
	for i, t := range tools {
		if t == nil {
			faults = append(faults, fmt.Errorf("tool %d is nil", i))
			continue
		}
		name := t.Name()
		token := events.Token(name)
		switch {
		case name == "":
			faults = append(faults, fmt.Errorf("tool %d has no name", i))
		case r.byName[name] != nil:
			faults = append(faults, fmt.Errorf("two tools are called %q", name))
		case tokens[token] != "":
			faults = append(faults, fmt.Errorf("tools %q and %q share the token %s", tokens[token], name, token))
		}
		r.byName[name], tokens[token] = t, name
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("build registry: %w", err)
	}
	return r, nil
}

// Resolve finds a tool.
func (r *Registry) Resolve(name string) (Tool, bool) {
	t, ok := r.byName[name]
	return t, ok
}

// All returns the tools in the order in which they were given.
func (r *Registry) All() []Tool { return slices.Clone(r.all) }

func (r *Registry) unknown(name string) string {
	names := make([]string, len(r.all))
	for i, t := range r.all {
		names[i] = t.Name()
	}
	if len(names) == 0 {
		return fmt.Sprintf("no tool is called %q; none is enabled here", name)
	}
	return fmt.Sprintf("no tool is called %q; there are: %s", name, strings.Join(names, ", "))
}

// A Dispatcher runs each request by the tool that it names.
type Dispatcher struct{ registry *Registry }

// NewDispatcher dispatches to the tools of r.
func NewDispatcher(r *Registry) *Dispatcher { return &Dispatcher{registry: r} }

// Execute implements [Executor]. A tool that is unknown, or that is no Executor,
// is a Failure. The request is validated once more.
func (d *Dispatcher) Execute(ctx context.Context, r events.ToolRequest) ToolResult {
	t, ok := d.registry.Resolve(r.Tool)
	if !ok {
		return fail(r, d.registry.unknown(r.Tool))
	}
	if v := t.ValidateRequest(r); !v.OK() {
		return fail(r, v.Reason())
	}
	x, ok := t.(Executor)
	if !ok {
		return fail(r, fmt.Sprintf("tool %q is described here but cannot be run", r.Tool))
	}
	return x.Execute(ctx, r)
}
