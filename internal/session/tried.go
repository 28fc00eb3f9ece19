package session

import (
	"regexp"
	"slices"
	"strconv"

	"correx/pkg/events"
)

// tried is what came of a model's calls since a goal was set.
type tried struct {
	done    int          // calls that went well
	failed  []Invocation // since the last of those
	results string       // what the model was told of them all
	outputs []string     // of those that went well
	last    events.Raw   // parameters of the last of them
}

func triedSince(s State, since, through uint64) tried {
	var t tried
	for _, i := range s.Tools {
		if i.End == nil || i.Requested == nil || i.Requested.Actor != "" || i.Follows() != "" || i.EndSeq <= since || i.EndSeq > through {
			continue
		}
		if f, ok := i.End.(events.ToolExecutionCompleted); ok {
			t.done, t.failed, t.outputs = t.done+1, nil, append(t.outputs, f.Receipt.Output)
			t.last = i.Requested.Request.Parameters
		} else {
			t.failed = append(t.failed, i)
		}
		t.results += " " + ResultText(i)
	}
	return t
}

// maxFailed is how many calls in a row may fail before a guided model has to
// answer: it would go on with whatever is at hand.
const maxFailed = 2

// enough reports whether a guided model has done what the plan says, or cannot.
func (p plan) enough(t tried) bool {
	calls := len(p.calls())
	switch {
	case len(t.failed) >= maxFailed:
		return true
	case calls == 0:
		return !p.open
	}
	return t.done >= calls
}

// A remedy is what the failure of a call says should be there instead.
type remedy struct {
	tool, operation string
	paths, texts    []string
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// remedy is what the last call failed for, if its failure names something near.
func (t tried) remedy() (remedy, bool) {
	if len(t.failed) == 0 {
		return remedy{}, false
	}
	i := t.failed[len(t.failed)-1]
	said, d := ResultText(i), deedOf(i.Requested.Request.Parameters)
	r := remedy{tool: i.Requested.Request.Tool, operation: d.Operation}
	if d.Target == "" {
		r.paths = nearTo(d.Path, said)
		return r, d.Path != "" && len(r.paths) > 0
	}
	for _, q := range quoted.FindAllString(said, -1) {
		if text, err := strconv.Unquote(q); err == nil && text != d.Target && !slices.Contains(r.texts, text) {
			r.texts = append(r.texts, text)
		}
	}
	if r.paths = []string{d.Path}; len(r.texts) == 0 {
		r.paths = nearTo(d.Path, said)
	}
	return r, len(r.paths) > 0
}
