package session

import (
	"bytes"
	"encoding/json"
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

// narrowed is a tool's schema whose property path, a string, is one of paths.
func narrowed(schema events.Raw, paths []string) events.Raw {
	if len(paths) == 0 {
		return schema
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties["path"]) == 0 {
		return schema
	}
	names := make([]string, len(paths))
	for k, p := range paths {
		names[k] = quote(p)
	}
	return bytes.Replace(schema, s.Properties["path"], []byte(`{"enum":[`+strings.Join(names, ",")+`]}`), 1)
}
