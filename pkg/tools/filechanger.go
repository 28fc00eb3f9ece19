package tools

import (
	"context"
	"fmt"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// A changer is a file tool that changes files. plan says what a request would make
// of them, or why it cannot.
type changer struct {
	files
	tier      events.Tier
	protected []string // beside .git; see [Config]
	plan      func(fileRequest) (fileChanges, error)
}

func (t changer) changes(r events.ToolRequest) (fileChanges, error) {
	q, err := t.parse(r)
	if err != nil {
		return fileChanges{}, err
	}
	c, err := t.plan(q)
	if err != nil {
		return fileChanges{}, fmt.Errorf("%s: %w", t.name, err)
	}
	return c, nil
}

// Tier implements [Tool].
func (t changer) Tier() events.Tier { return t.tier }

// RequiredCapabilities implements [Tool].
func (changer) RequiredCapabilities() []events.ToolCapability {
	return []events.ToolCapability{events.FileWrite}
}

// AffectedPaths implements [FileAffectingTool].
func (t changer) AffectedPaths(r events.ToolRequest) []string {
	q, err := t.parse(r)
	if err != nil || q.Path == nil {
		return nil
	}
	return []string{q.place.Path()}
}

// Place implements [StagingTool].
func (t changer) Place(path string) (workspace.Place, error) { return t.roots.Find(path) }

// ValidateRequest implements [Tool].
func (t changer) ValidateRequest(r events.ToolRequest) ValidationResult {
	if _, err := t.changes(r); err != nil {
		return Invalid("%s", visible(err.Error()))
	}
	return Valid()
}

// Preview implements [Previewer].
func (t changer) Preview(ctx context.Context, r events.ToolRequest) Preview {
	c, err := t.changes(r)
	if err != nil {
		return Preview{Reason: visible(err.Error()), Tier: t.tier}
	}
	return c.preview(ctx, t.tier)
}

// Execute implements [Executor].
func (t changer) Execute(ctx context.Context, r events.ToolRequest) ToolResult {
	c, err := t.changes(r)
	if err != nil {
		return fail(r, visible(err.Error()))
	}
	return c.apply(ctx, r)
}
