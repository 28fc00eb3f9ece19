package session

import (
	"slices"

	"correx/pkg/events"
)

// limits returns the session's limits, filled up from the settings.
func (r *reactor) limits() events.Limits {
	l, d := r.s.Started.Limits, r.w.Settings.Limits
	if l.Turns == 0 {
		l.Turns = d.Turns
	}
	if l.ToolCalls == 0 {
		l.ToolCalls = d.ToolCalls
	}
	if l.Tokens == 0 {
		l.Tokens = d.Tokens
	}
	if l.WallTime == 0 {
		l.WallTime = d.WallTime
	}
	return l
}

// A repetition is how often calls of this activation came with the same result.
type repetition struct {
	tool  string // of the call that came most often
	count int
	shut  []string // tools that brought nothing new since the last progress
}

// repetition counts. A call that brings something new is progress, and opens all
// tools again; one that has come too often shuts its tool until then.
func (r *reactor) repetition() repetition {
	var rep repetition
	counts := map[string]int{}
	for _, i := range r.s.Tools[min(r.s.Active.Tools, len(r.s.Tools)):] {
		if i.Requested == nil || i.Requested.Actor != "" || i.Follows() != "" || i.End == nil {
			continue
		}
		tool := i.Requested.Request.Tool
		key := tool + "\x00" + string(i.Requested.Request.Parameters) + "\x00" + ResultText(i)
		counts[key]++
		if counts[key] > rep.count {
			rep.tool, rep.count = tool, counts[key]
		}
		switch limit := r.w.Settings.Withdraw; {
		case counts[key] == 1:
			rep.shut = nil
		case limit > 0 && counts[key] >= limit && !slices.Contains(rep.shut, tool):
			rep.shut = append(rep.shut, tool)
		}
	}
	return rep
}
