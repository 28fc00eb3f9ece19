package session

import (
	"path"
	"slices"
	"strings"
	"unicode"
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

// namesIn are the words of a text that name files: those that look like paths,
// else those that can be names only.
func namesIn(text string) []string {
	if all := pathsIn(text); len(all) > 0 {
		return all
	}
	var out []string
	before := ""
	for _, w := range strings.Fields(text) {
		w = strings.Trim(w, `.,:;!?"'()`)
		if namesFile(w, before) && !slices.Contains(out, w) {
			out = append(out, w)
		}
		before = strings.ToLower(w)
	}
	return out
}

// refersBack reports whether a text speaks of something that was named before.
func refersBack(text string) bool {
	for _, w := range strings.Fields(strings.ToLower(text)) {
		switch strings.Trim(w, ".,!?") {
		case "it", "its", "them", "that", "this", "again", "first", "last", "same", "file":
			return true
		}
	}
	return false
}

// nearTo are the paths that words of a text may mean instead of one that is
// written wrong: those that differ least from it, and in a third of it at most.
func nearTo(wrong, text string) []string {
	var out []string
	least := len(wrong) / 3
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'(),;:<>{}[]`+"`", r) }) {
		w = strings.TrimRight(w, ".!?")
		if w == "" || strings.HasPrefix(w, "/") {
			continue
		}
		meant := []string{w}
		switch {
		case strings.HasSuffix(w, "/"):
			meant = []string{path.Join(w, path.Base(wrong)), path.Clean(w)}
		case !strings.Contains(w, "/"):
			meant = append(meant, path.Join(path.Dir(wrong), w))
		}
		for _, p := range meant {
			d := distance(strings.ToLower(p), strings.ToLower(wrong))
			if p == wrong || d > least || slices.Contains(out, p) {
				continue
			}
			if d < least {
				least, out = d, nil
			}
			out = append(out, p)
		}
	}
	return out
}

// distance is how many bytes have to be put in, left out or changed to make one
// text of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for k := range len(b) {
			change := before
			if a[i] != b[k] {
				change++
			}
			before = row[k+1]
			row[k+1] = min(change, before+1, row[k]+1)
		}
	}
	return row[len(b)]
}
