package session

import (
	"bytes"
	"encoding/json"
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

// Narrowed are the offers with paths that must be among those that were spoken of
// since the latest goal, or else before it. What is withdrawn was tried already:
// then any path may be written again, as where no path was spoken of.
func Narrowed(s State, offers []events.ToolOffer, f events.InferenceRequested) []events.ToolOffer {
	if !f.Guided || s.Started == nil || len(f.Withdrawn) > 0 {
		return offers
	}
	paths := spokenOf(s, offers, f)
	out := slices.Clone(offers)
	for k := range out {
		out[k].Schema = narrowed(out[k].Schema, paths)
	}
	return out
}

// spokenOf are the paths that may be meant.
func spokenOf(s State, offers []events.ToolOffer, f events.InferenceRequested) []string {
	goal := goalOf(s, f)
	if paths := pathsIn(goal + " " + resultsSince(s, f)); len(paths) > 0 {
		return paths
	}
	var before []string
	for _, m := range historyOf(s, f) {
		if m.Role == events.RoleUser {
			before = append(before, m.Content)
		}
	}
	if paths := pathsIn(s.Started.Task + " " + strings.Join(before, " ")); len(paths) > 0 && refersBack(goal) {
		return paths
	}
	return newIndex(samplesOf(offers)).unknown(goal)
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

// resultsSince are the results of tools since the latest goal.
func resultsSince(s State, f events.InferenceRequested) string {
	from := uint64(0)
	for _, m := range s.Messages {
		if m.Seq <= f.Through {
			from = m.Seq
		}
	}
	var b strings.Builder
	for _, i := range s.Tools {
		if i.End != nil && i.Requested != nil && i.EndSeq > from && i.EndSeq <= f.Through {
			b.WriteString(" " + ResultText(i))
		}
	}
	return b.String()
}

// narrowed is a tool's schema in which each property path that is a string is one
// of paths.
func narrowed(schema events.Raw, paths []string) events.Raw {
	const name = `"path":`
	if len(paths) == 0 {
		return schema
	}
	names := make([]string, len(paths))
	for k, p := range paths {
		names[k] = quote(p)
	}
	var out bytes.Buffer
	for rest := []byte(schema); ; {
		head, tail, found := bytes.Cut(rest, []byte(name))
		out.Write(head)
		if !found {
			return out.Bytes()
		}
		var value struct {
			Type string `json:"type"`
		}
		dec := json.NewDecoder(bytes.NewReader(tail))
		err := dec.Decode(&value)
		rest = tail
		out.WriteString(name)
		if err == nil && value.Type == "string" {
			rest = tail[dec.InputOffset():]
			out.WriteString(`{"enum":[` + strings.Join(names, ",") + `]}`)
		}
	}
}
