package main

import (
	"context"
	"strings"
	"testing"

	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// draft is a tool that leaves changes behind, to be looked at.
type draft struct{}

func (draft) Name() string                 { return "draft" }
func (draft) Description() string          { return "drafts a change" }
func (draft) Tier() events.Tier            { return events.T2 }
func (draft) Example() *events.ToolExample { return nil }
func (draft) ParametersSchema() events.Raw {
	return events.Raw(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`)
}

func (draft) RequiredCapabilities() []events.ToolCapability {
	return []events.ToolCapability{events.ProcessSpawn}
}

func (draft) ValidateRequest(events.ToolRequest) tools.ValidationResult { return tools.Valid() }

func (draft) Execute(_ context.Context, r events.ToolRequest) tools.ToolResult {
	return tools.Success{Invocation: r.Invocation, Output: "drafted", Detail: tools.Detail{
		FollowUp: &events.FollowUp{Tool: "draft_commit", Parameters: r.Parameters}}}
}

// draftCommit makes what draft has drafted.
type draftCommit struct{ draft }

func (draftCommit) Name() string       { return "draft_commit" }
func (draftCommit) FollowUpOnly() bool { return true }

// longDiff has more lines than a card shows.
var longDiff = "--- a.txt\n+++ a.txt\n@@ -0,0 +1,300 @@\n" + strings.Repeat("+line\n", 300)

func (draftCommit) Preview(_ context.Context, r events.ToolRequest) tools.Preview {
	p := tools.Preview{Valid: true, Diff: "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two\n", Affected: []string{"/area/a.txt"}, Notes: []string{"directory /area, network off"}}
	if strings.Contains(string(r.Parameters), "long") {
		p.Diff = longDiff
	}
	return p
}

func (draftCommit) Execute(_ context.Context, r events.ToolRequest) tools.ToolResult {
	return tools.Success{Invocation: r.Invocation, Output: "committed"}
}

func TestReviews(t *testing.T) {
	m := newMachine(t)
	t.Run("yes and yes", func(t *testing.T) {
		p := says("a", "s", "a")
		o := m.want(m.do(call{args: []string{"request", "draft", hello}, keys: p}), 0,
			"draft T2 asks for approval", "isolation "+string(sandbox.Look().Level), "its changes wait for a review by draft_commit",
			"Review of ", "draft_commit T2 asks for approval", "-one", "+two", "directory /area, network off", "/area/a.txt")
		if o.stdout != "drafted\ncommitted\n" || p.times() != 3 {
			t.Errorf("stdout is %q, asked %d times", o.stdout, p.times())
		}
	})
	t.Run("yes and no", func(t *testing.T) {
		o := m.want(m.do(call{args: []string{"request", "draft", hello}, keys: says("a", "r:too much")}), 4, "denied by operator: too much")
		if o.stdout != "drafted\n" {
			t.Errorf("stdout is %q", o.stdout)
		}
	})
	t.Run("in a session", func(t *testing.T) {
		m.want(m.run("run", "a task", "--detach", "--session", "s1", "--mode", "auto"), 0)
		p := says("s", "a") // s is no answer to a review
		o := m.want(m.do(call{args: []string{"request", "draft", hello, "--session", "s1", "--invocation", "mine"}, keys: p}), 0,
			"approved by policy", "review of mine: draft_commit T2", "waits for approval")
		if strings.Contains(o.stderr, "[s] for the session") || strings.Contains(o.stderr, "a task") || p.times() != 2 {
			t.Errorf("asked %d times:\n%s", p.times(), o.stderr)
		}
		m.want(m.run("show", "s1"), 0, "review of mine")
	})
	t.Run("by itself", func(t *testing.T) {
		m.want(m.run("request", "draft", `{"text":"long"}`, "--detach", "--invocation", "i1"), 0)
		m.until(func() bool { return m.run("approve", "i1").status == 0 })
		m.until(func() bool {
			return strings.Contains(m.run("approve", "i1").stderr, "(its review is system/i1-c)")
		})
		m.until(func() bool {
			return strings.Contains(m.run("replay", "--kind", "tool").stdout, "i1-c waits for approval")
		})
		m.want(m.run("approve", "i1-c", "--scope", "session"), 2, "approve it once")
		m.want(m.run("approve", "i1-c", "--digest", "0000"), 1, "Not all of it fits: the rest is in `bus diff system/i1-c`", "… ")
		if o := m.want(m.run("diff", "i1-c"), 0); o.stdout != longDiff {
			t.Errorf("the diff has %d bytes, want %d", len(o.stdout), len(longDiff))
		}
		m.want(m.run("diff", "i1-c", "--color"), 0, "\x1b[32m+line\x1b[0m")
		m.want(m.run("diff", "i1-c", "--json"), 0, `"ran": false`)
		m.want(m.run("diff", "i1"), 0, "has no diff")
		m.want(m.run("diff", "none"), 1, "no such invocation")
		m.want(m.run("reject", "i1-c"), 0)
	})
	t.Run("called by hand", func(t *testing.T) {
		m.want(m.run("request", "draft_commit", hello), 1, "only follows up")
	})
	t.Run("a session that ends in between", func(t *testing.T) {
		m.want(m.run("run", "a task", "--detach", "--session", "s2", "--mode", "auto"), 0)
		p, done := says(), make(chan outcome, 1)
		go func() { done <- m.do(call{args: []string{"request", "draft", hello, "--session", "s2"}, keys: p}) }()
		m.until(func() bool { return p.times() == 1 })
		m.want(m.run("cancel", "s2"), 0)
		m.want(<-done, 1, "rejected: the session ended")
	})
}
