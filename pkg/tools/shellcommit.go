package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"correx/pkg/events"
	"correx/pkg/tools/changes"
	"correx/pkg/tools/workspace"
)

// review holds the changes back and asks for a second look at them.
func (r *shellRun) review(s Success, set changes.Set) ToolResult {
	name, data, err := r.kept.put(set)
	if err != nil {
		return r.undone(fmt.Sprintf("shell: %s ended well, but its changes could not be kept for the review: %v", r.argv[0], err))
	}
	parameters, _ := json.Marshal(map[string]string{"changes": name}) // a string always encodes
	created, changed, deleted := set.Summary()
	s.FollowUp = &events.FollowUp{Tool: shellCommitName, Parameters: parameters}
	s.Overflow = append(s.Overflow, Blob{Name: "changes", MediaType: "application/json", Data: data})
	s.Diff = set.Diff(0)
	s.Affected = []string{} // nothing yet
	s.Structured = withChanges(s.Structured, created, changed, deleted)
	if s.Output == "" {
		s.Output = "It would be: " + summaryText(created, changed, deleted)
	}
	return s
}

const shellCommitName = "shell_commit"

// A ShellCommitTool commits what a command changed on an overlay, when a person
// has seen it. Only the follow-up of such a run may call it.
type ShellCommitTool struct {
	kept  kept
	roots *workspace.Roots
}

func newShellCommit(c Config) (*ShellCommitTool, error) {
	shell, err := newShell(c)
	if err != nil {
		return nil, nil // the shell says why
	}
	dirs := shell.roots
	for _, p := range shell.programs {
		dirs = append(dirs, p.writable...)
	}
	roots, err := workspace.Open(outermost(dirs))
	if err != nil {
		return nil, err
	}
	return &ShellCommitTool{kept: shell.kept, roots: roots}, nil
}

// Commits implements [CommittingTool].
func (*ShellCommitTool) Commits(events.ToolRequest) bool { return true }

// Name implements [Tool].
func (*ShellCommitTool) Name() string { return shellCommitName }

// Description implements [Tool].
func (*ShellCommitTool) Description() string {
	return "Commits what a reviewed command changed, all of it or nothing."
}

// Tier implements [Tool].
func (*ShellCommitTool) Tier() events.Tier { return events.T2 }

// FollowUpOnly implements [FollowUpTool].
func (*ShellCommitTool) FollowUpOnly() bool { return true }

// RequiredCapabilities implements [Tool].
func (*ShellCommitTool) RequiredCapabilities() []events.ToolCapability {
	return []events.ToolCapability{events.FileWrite}
}

// ParametersSchema implements [Tool].
func (*ShellCommitTool) ParametersSchema() events.Raw {
	return events.Raw(`{"type":"object","properties":{"changes":{"type":"string","pattern":"^[0-9a-f]{64}$"}},"required":["changes"],"additionalProperties":false}`)
}

// Example implements [Tool]: no model calls it.
func (*ShellCommitTool) Example() *events.ToolExample { return nil }

// find reads a request and the changes that it names.
func (t *ShellCommitTool) find(r events.ToolRequest) (name string, set changes.Set, err error) {
	var p struct {
		Changes string `json:"changes"`
	}
	if err := decode(r, &p); err != nil {
		return "", set, fmt.Errorf("shell_commit: %w", err)
	}
	if set, err = t.kept.get(p.Changes); err != nil {
		return "", set, fmt.Errorf("shell_commit: %w", err)
	}
	if err := set.Check(t.roots); err != nil {
		return "", set, fmt.Errorf("shell_commit: the files are not what they were when the command ran, so its changes cannot be committed: %w; run the command again", err)
	}
	return p.Changes, set, nil
}

// ValidateRequest implements [Tool].
func (t *ShellCommitTool) ValidateRequest(r events.ToolRequest) ValidationResult {
	if _, _, err := t.find(r); err != nil {
		return Invalid("%v", err)
	}
	return Valid()
}

// Preview implements [Previewer]: what the command really did.
func (t *ShellCommitTool) Preview(_ context.Context, r events.ToolRequest) Preview {
	_, set, err := t.find(r)
	if err != nil {
		return Preview{Reason: err.Error(), Tier: events.T2}
	}
	return previewOf(set, events.T2)
}

// previewOf shows a set.
func previewOf(set changes.Set, tier events.Tier) Preview {
	created, changed, deleted := set.Summary()
	return Preview{
		Valid: true, Tier: tier, Diff: set.Diff(SummarySize), Base: set.Base(),
		Affected: append(append(append([]string(nil), created...), changed...), deleted...),
		Notes:    []string{summaryText(created, changed, deleted)},
	}
}

// Execute implements [Executor].
func (t *ShellCommitTool) Execute(ctx context.Context, r events.ToolRequest) ToolResult {
	name, set, err := t.find(r)
	if err != nil {
		return fail(r, err.Error())
	}
	if err := commitIn(ctx, t.roots, set); err != nil {
		f := fail(r, "shell_commit: "+err.Error())
		f.Recoverable = true
		return f
	}
	created, changed, deleted := set.Summary()
	out := Success{Invocation: r.Invocation, Output: summaryText(created, changed, deleted)}
	out.Structured = withChanges(nil, created, changed, deleted)
	t.kept.drop(name)
	return out
}

// withChanges adds the lists to a structured output.
func withChanges(structured events.Raw, created, changed, deleted []string) events.Raw {
	fields := map[string]json.RawMessage{}
	if len(structured) > 0 && json.Unmarshal(structured, &fields) != nil {
		return structured
	}
	for name, list := range map[string][]string{"created": created, "changed": changed, "deleted": deleted} {
		if len(list) > maxListed {
			list = append(list[:maxListed:maxListed], fmt.Sprintf("… and %d more", len(list)-maxListed))
		}
		if len(list) > 0 {
			fields[name], _ = json.Marshal(list) // strings always encode
		}
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return structured
	}
	return out
}

// maxListed is how many names a list in a receipt has.
const maxListed = 200

// summaryText says in a line what a set does.
func summaryText(created, changed, deleted []string) string {
	var parts []string
	for _, p := range []struct {
		verb string
		list []string
	}{{"created", created}, {"changed", changed}, {"deleted", deleted}} {
		switch n := len(p.list); {
		case n > 5:
			parts = append(parts, fmt.Sprintf("%s %s and %d more", p.verb, strings.Join(p.list[:5], ", "), n-5))
		case n > 0:
			parts = append(parts, p.verb+" "+strings.Join(p.list, ", "))
		}
	}
	if len(parts) == 0 {
		return "nothing was changed"
	}
	return strings.Join(parts, "; ")
}

// commitIn makes the changes of a set, all of them or none, by the scope of the
// run, or without one for who keeps no journal.
func commitIn(ctx context.Context, roots *workspace.Roots, set changes.Set) error {
	if commit := ScopeOf(ctx).Commit; commit != nil {
		return commit(ctx, roots, set)
	}
	return set.Apply(ctx, roots, nil)
}
