package toolworker_test

import (
	"errors"
	"testing"

	"correx/internal/eventlog"
	"correx/pkg/events"
)

// TestRun_WhatWasHeardIsHeldAgainstTheSignature: a worker hears requests as they
// are published, also those that the log refuses. It runs what was approved.
func TestRun_WhatWasHeardIsHeldAgainstTheSignature(t *testing.T) {
	p := newPlant(t, tokens...)
	p.start("w1")
	p.announced("")
	for _, c := range []struct {
		name          string
		before, after bool // that the log refuses one of other content: heard first, or last
	}{
		{name: "alone"}, {name: "before", before: true}, {name: "after", after: true}, {name: "both", before: true, after: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			right := call{id: c.name, tool: "peek", params: `{"fail":"the one that was approved"}`}
			wrong := call{id: c.name, tool: "peek", params: `{}`}
			if c.before {
				p.refused(wrong)
			}
			p.request(right)
			if c.after {
				p.refused(wrong)
			}
			p.approve(right)
			if e := p.failed(c.name); e.Reason != "the one that was approved" {
				t.Errorf("end is %s", jsonOf(e))
			}
		})
	}
}

// refused publishes a request that the log does not take.
func (p *plant) refused(c call) {
	p.Helper()
	_, err := p.log.Append(p.ctx, events.ToolInvocationRequested{
		Ref: c.aggregate().Ref(), Token: c.tool,
		Request: events.ToolRequest{
			Invocation: events.ToolInvocationID(c.id), Session: "s1", Stage: "turn-1", Tool: c.tool, Parameters: events.Raw(c.params),
		},
	}, 1_000_000, "")
	if !errors.Is(err, eventlog.ErrConflict) {
		p.Errorf("a request behind what is not there: %v", err)
	}
}
