package changes

import (
	"fmt"
	"strconv"
	"strings"

	"correx/pkg/tools/diff"
)

// Diff is the set as unified diffs, path by path, with lines for what such a diff
// cannot show. From the first path on that would make it longer than max bytes it
// only counts; 0 is no bound.
func (s Set) Diff(max int) string {
	var b strings.Builder
	for i, c := range s.Changes {
		text := c.diff()
		if max > 0 && b.Len()+len(text) > max {
			fmt.Fprintf(&b, "(%d more of %d paths are not shown)\n", len(s.Changes)-i, len(s.Changes))
			break
		}
		b.WriteString(text)
	}
	return b.String()
}

func (c Change) diff() string {
	var text string
	if c.Before.Type == File || c.After.Type == File {
		old := c.Old
		if c.Before.SHA256 == c.After.SHA256 {
			old = c.Data
		}
		text = diff.Unified(
			diff.Side{Name: c.Path, Exists: c.Before.Type == File, Data: old},
			diff.Side{Name: c.Path, Exists: c.After.Type == File, Data: c.Data},
		)
	}
	if text == "" {
		text = fmt.Sprintf("--- %s\n+++ %s\n", side(c.Path, c.Before), side(c.Path, c.After))
	}
	return text + c.note()
}

// note is a line for what is no change of lines in a file.
func (c Change) note() string {
	b, a := c.Before, c.After
	switch {
	case b.Type == a.Type && b.Mode != a.Mode:
		return fmt.Sprintf("Mode %04o becomes %04o\n", b.Mode, a.Mode)
	case b.Type == File && a.Type == File:
		return ""
	case a.Type == Nothing && b.Type == File:
		return ""
	case a.Type == Nothing:
		return fmt.Sprintf("%s is deleted\n", upper(b.describe()))
	case b.Type == Nothing && a.Type == File && a.Mode&0o111 == 0:
		return ""
	case b.Type == Nothing && a.Type == File:
		return fmt.Sprintf("A new file of mode %04o\n", a.Mode)
	case b.Type == Nothing:
		return "A new " + strings.TrimPrefix(a.describe(), "a ") + "\n"
	}
	return fmt.Sprintf("%s becomes %s\n", upper(b.describe()), a.describe())
}

func (s State) describe() string {
	if s.Type == Symlink {
		return "a symbolic link to " + strconv.Quote(s.Target)
	}
	return "a " + string(s.Type)
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func side(path string, s State) string {
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		path = strconv.Quote(path)
	}
	switch s.Type {
	case Nothing:
		return "/dev/null"
	case Directory:
		return path + "/"
	}
	return path
}
