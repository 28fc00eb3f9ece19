package tools

import (
	"context"
	"fmt"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// A Tool says what it is and which requests it takes. It never runs anything.
// Its methods may be called from several goroutines.
type Tool interface {
	Name() string // raw; unique within a registry
	Description() string
	Tier() events.Tier // the least tier of its requests
	RequiredCapabilities() []events.ToolCapability
	// ParametersSchema is a JSON Schema whose properties stand in the order in
	// which a model is to write them.
	ParametersSchema() events.Raw
	// ValidateRequest judges the parameters. It may look at files, and changes
	// nothing. It is asked before a person is, and again before running.
	ValidateRequest(events.ToolRequest) ValidationResult
	// Example is one worked call, or nil.
	Example() *events.ToolExample
}

// An Executor runs requests. It returns when nothing of the run is left, also
// when ctx ends. Failures are values.
type Executor interface {
	Execute(ctx context.Context, r events.ToolRequest) ToolResult
}

// A FileAffectingTool changes files. Whoever runs it backs up the paths first;
// it must change no others.
type FileAffectingTool interface {
	Tool
	// AffectedPaths are absolute, and free of symbolic links as far as they
	// exist. It is empty for a request that changes nothing or is not valid.
	AffectedPaths(events.ToolRequest) []string
}

// A StagingTool is a FileAffectingTool that tells [Scope.Recorder] of every
// change before making it: a file that it never announced was not changed by it.
type StagingTool interface {
	FileAffectingTool
	// Place finds one of the affected paths below the tool's directories.
	Place(path string) (workspace.Place, error)
}

// A DirTool is a tool that needs [Scope.Dir], for some requests, to run and to
// preview. Tools that are neither this nor a StagingTool have one when they run.
type DirTool interface {
	NeedsDir(events.ToolRequest) bool
}

// A CommittingTool runs on copies: what it changes of the workspace it changes by
// [Scope.Commit], when its process is dead and it knows what that is to be. Its
// receipt's diff and affected paths are those of the set.
type CommittingTool interface {
	// Commits reports whether a run of the request is like that. Of one that is not
	// the journal knows nothing but that it ran.
	Commits(events.ToolRequest) bool
}

// Commits reports whether t is a [CommittingTool] that says so of r.
func Commits(t Tool, r events.ToolRequest) bool {
	c, ok := t.(CommittingTool)
	return ok && c.Commits(r)
}

// A Previewer says what a request would do, and touches nothing.
type Previewer interface {
	Preview(ctx context.Context, r events.ToolRequest) Preview
}

// A FollowUpTool says whether only the [events.FollowUp] of another tool's result
// may call it: no model has it in its schema, no actor may ask for it.
type FollowUpTool interface {
	FollowUpOnly() bool
}

// FollowUpOnly reports whether t is a [FollowUpTool] that says so.
func FollowUpOnly(t Tool) bool {
	f, ok := t.(FollowUpTool)
	return ok && f.FollowUpOnly()
}

// A ForeignTool says who else it comes from, such as an MCP server.
type ForeignTool interface {
	Origin() string
}

// A RepeatableTool may touch nothing although its capabilities do not tell so.
type RepeatableTool interface {
	Repeatable() bool
}

// A TierRaiser knows requests that are worse than its tool's tier. A lower
// answer counts for nothing; see [TierOf].
type TierRaiser interface {
	TierFor(events.ToolRequest) events.Tier
}

// A Preview is what a request would do.
type Preview struct {
	Valid    bool
	Reason   string // why it is not valid
	Diff     string // unified, at most 64 KiB
	Base     []events.BaseHash
	Affected []string
	Tier     events.Tier
	Notes    []string // what else a person should know, a line each
}

// A ValidationResult is Valid, the zero value, or Invalid with a reason.
type ValidationResult struct{ reason string }

// Valid accepts a request.
func Valid() ValidationResult { return ValidationResult{} }

// Invalid refuses a request. The reason is told to the model.
func Invalid(format string, a ...any) ValidationResult {
	reason := fmt.Sprintf(format, a...)
	if reason == "" {
		reason = "invalid"
	}
	return ValidationResult{reason: reason}
}

// OK reports whether the request is valid.
func (v ValidationResult) OK() bool { return v.reason == "" }

// Reason says why the request is not valid; it is empty when it is.
func (v ValidationResult) Reason() string { return v.reason }

// TierOf is the tier of one request: the tool's, or higher where the tool says
// that this request is worse.
func TierOf(t Tool, r events.ToolRequest) events.Tier {
	tier := t.Tier()
	if w, ok := t.(TierRaiser); ok {
		tier = max(tier, w.TierFor(r))
	}
	return tier
}

// Touches reports whether t may change anything at all, which its capabilities
// tell: reading files is harmless, everything else is not. Runs of a tool that
// touches nothing need no journal and may be repeated.
func Touches(t Tool) bool {
	if r, ok := t.(RepeatableTool); ok && r.Repeatable() {
		return false
	}
	for _, c := range t.RequiredCapabilities() {
		if c != events.FileRead {
			return true
		}
	}
	return false
}
