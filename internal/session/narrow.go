package session

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode"

	"correx/pkg/events"
)

// A small model that is free to write any path writes the one of the example. So
// where paths are spoken of, it may choose among those alone.

// pathsIn are the words of a text that look like paths, in their order.
func pathsIn(text string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'(),;<>{}[]`+"`", r) }) {
		w = strings.TrimRight(w, ".:!?")
		if len(w) > 1 && len(w) <= 200 && !seen[w] && pathLike(w) {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

// pathLike: a dot before a short ending, or a slash, and no address of the web.
func pathLike(w string) bool {
	if strings.Contains(w, "://") || strings.HasPrefix(w, "-") {
		return false
	}
	if strings.Contains(w, "/") {
		return strings.ContainsFunc(w, unicode.IsLetter)
	}
	dot := strings.LastIndexByte(w, '.')
	return dot > 0 && len(w)-dot <= 9 && strings.ContainsFunc(w[dot:], unicode.IsLetter)
}

// Narrowed are the offers to a model that is guided: the tools, and what is done
// with them, are those of the samples that it is shown, as long as none of its
// calls has failed; paths are among those that were spoken of. What is withdrawn
// was tried already: then everything is open again.
func Narrowed(s State, offers []events.ToolOffer, f events.InferenceRequested) []events.ToolOffer {
	if !f.Guided || s.Started == nil || len(f.Withdrawn) > 0 {
		return offers
	}
	goal, since := goalSince(s, f.Through)
	tried := triedSince(s, since, f.Through)
	out := slices.Clone(offers)
	if first, _ := newIndex(samplesOf(offers)).like(goal); len(tried.failed) == 0 {
		out = shown(out, first)
	}
	paths := tried.paths(s, goal, since, f)
	for k := range out {
		out[k].Schema = narrowed(out[k].Schema, narrowing{paths: paths})
	}
	return out
}

// shown are the offers that a chain has, with the operations that it has.
func shown(offers []events.ToolOffer, chain []sample) []events.ToolOffer {
	var out []events.ToolOffer
	for _, o := range offers {
		var operations []string
		for _, s := range chain {
			if s.tool == o.Name {
				operations = append(operations, operationOf(s.Parameters))
			}
		}
		if len(operations) > 0 {
			o.Schema = narrowed(o.Schema, narrowing{operations: operations})
			out = append(out, o)
		}
	}
	return out
}

func operationOf(parameters events.Raw) string {
	var p struct {
		Operation string `json:"operation"`
	}
	_ = json.Unmarshal(parameters, &p) // a tool without operations has none
	return p.Operation
}

// Planned is how many calls the goal of a guided model seems to need: one for each
// part that a tool does, and no fewer than the files that it names.
func Planned(goal string, offers []events.ToolOffer) int {
	first, _ := newIndex(samplesOf(offers)).like(goal)
	calls := 0
	for _, s := range first {
		if s.tool != "" {
			calls++
		}
	}
	if calls == 0 {
		return 0
	}
	return max(calls, len(pathsIn(goal)))
}

// tried is what came of the calls since a goal was set.
type tried struct {
	done    int
	failed  []Invocation
	results strings.Builder
}

func triedSince(s State, since, through uint64) *tried {
	t := &tried{}
	for _, i := range s.Tools {
		if i.End == nil || i.Requested == nil || i.Requested.Actor != "" || i.EndSeq <= since || i.EndSeq > through {
			continue
		}
		if _, ok := i.End.(events.ToolExecutionCompleted); ok {
			t.done++
		} else {
			t.failed = append(t.failed, i)
		}
		t.results.WriteString(" " + ResultText(i))
	}
	return t
}

// paths are those that may be meant: named by the goal or by what came of it, but
// for those with which a call failed; else, if the goal refers back, those named
// before; else the words of the goal that no sample has.
func (t *tried) paths(s State, goal string, since uint64, f events.InferenceRequested) []string {
	all := pathsIn(goal + " " + t.results.String())
	if len(all) == 0 && refersBack(goal) {
		var before strings.Builder
		before.WriteString(s.Started.Task)
		for _, m := range historyOf(s, f) {
			before.WriteString(" " + m.Content)
		}
		return relative(pathsIn(before.String()))
	}
	var names, bad []string
	for _, i := range t.failed {
		var p struct {
			Path string `json:"path"`
		}
		if json.Unmarshal(i.Requested.Request.Parameters, &p) == nil && p.Path != "" {
			bad = append(bad, p.Path)
		}
	}
	for _, p := range relative(all) {
		if !slices.Contains(bad, p) {
			names = append(names, p)
		}
		if strings.HasSuffix(p, "/") && len(bad) > 0 { // a directory that is there, for one that is not
			names = append(names, p+path.Base(bad[len(bad)-1]))
		}
	}
	return names
}

// relative leaves out absolute paths where there are others.
func relative(all []string) []string {
	out := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return strings.HasPrefix(p, "/") })
	if len(out) == 0 {
		return all
	}
	return out
}

// refersBack reports whether a goal speaks of something that was named before.
func refersBack(goal string) bool {
	for _, w := range strings.Fields(strings.ToLower(goal)) {
		switch strings.Trim(w, ".,!?") {
		case "it", "its", "them", "that", "this", "again", "first", "last", "same", "file":
			return true
		}
	}
	return false
}
