// Package diff computes unified diffs by the longest common subsequence.
package diff

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Side is a file before or after a change.
type Side struct {
	Name   string
	Exists bool
	Data   []byte
}

// context is how many unchanged lines stand around a change.
const context = 3

// maxCells bounds the table of the comparison: lines of one side times lines of
// the other, after the common ends are gone. It is some 16 MiB and 20 ms.
const maxCells = 4 << 20

// Unified returns the unified diff from old to new. It is empty when nothing
// differs. Binary files and changes too large to compare get one line that says
// so in place of the hunks.
func Unified(old, new Side) string {
	if old.Exists == new.Exists && bytes.Equal(old.Data, new.Data) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", header(old), header(new))
	if binary(old.Data) || binary(new.Data) {
		fmt.Fprintf(&b, "Binary files differ: %d bytes before, %d after\n", len(old.Data), len(new.Data))
		return b.String()
	}
	a, z := lines(old.Data), lines(new.Data)
	edits, ok := compare(a, z)
	if !ok {
		fmt.Fprintf(&b, "Too much differs to show: %d lines before, %d after\n", len(a), len(z))
		return b.String()
	}
	for _, h := range hunks(edits) {
		h.write(&b)
	}
	return b.String()
}

func header(s Side) string {
	if !s.Exists {
		return "/dev/null"
	}
	if strings.ContainsFunc(s.Name, func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }) {
		return strconv.Quote(s.Name)
	}
	return s.Name
}

func binary(data []byte) bool { return bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) }

// lines splits after each newline; only the last may lack one.
func lines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	out := strings.SplitAfter(string(data), "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// An edit is one line that stays (' '), goes ('-') or comes ('+').
type edit struct {
	kind byte
	line string
}

// compare turns a into z. It reports false when that would cost too much.
func compare(a, z []string) ([]edit, bool) {
	head := 0
	for head < len(a) && head < len(z) && a[head] == z[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(z)-head && a[len(a)-1-tail] == z[len(z)-1-tail] {
		tail++
	}
	from, to := a[head:len(a)-tail], z[head:len(z)-tail]
	if (len(from)+1)*(len(to)+1) > maxCells {
		return nil, false
	}
	edits := make([]edit, 0, len(a)+len(to))
	for _, l := range a[:head] {
		edits = append(edits, edit{' ', l})
	}
	edits = appendMiddle(edits, from, to)
	for _, l := range a[len(a)-tail:] {
		edits = append(edits, edit{' ', l})
	}
	return edits, true
}

// appendMiddle walks the table of common subsequences: cell (i, j) has the
// length of the longest one of from[i:] and to[j:].
func appendMiddle(edits []edit, from, to []string) []edit {
	w := len(to) + 1
	common := make([]int32, (len(from)+1)*w)
	for i := len(from) - 1; i >= 0; i-- {
		for j := len(to) - 1; j >= 0; j-- {
			if from[i] == to[j] {
				common[i*w+j] = common[(i+1)*w+j+1] + 1
			} else {
				common[i*w+j] = max(common[(i+1)*w+j], common[i*w+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(from) || j < len(to) {
		switch {
		case i < len(from) && j < len(to) && from[i] == to[j]:
			edits = append(edits, edit{' ', from[i]})
			i, j = i+1, j+1
		case i < len(from) && (j == len(to) || common[(i+1)*w+j] >= common[i*w+j+1]):
			edits = append(edits, edit{'-', from[i]})
			i++
		default:
			edits = append(edits, edit{'+', to[j]})
			j++
		}
	}
	return edits
}

// A hunk is a run of edits, and the lines before it on either side.
type hunk struct {
	oldBefore, newBefore int
	edits                []edit
}

// hunks cuts the edits where more than twice the context is unchanged.
func hunks(edits []edit) []hunk {
	var out []hunk
	oldLine, newLine := 0, 0
	start, lastChange := -1, -1
	var open hunk
	for i, e := range edits {
		if e.kind != ' ' {
			if start < 0 || i-lastChange > 2*context {
				if start >= 0 {
					open.edits = edits[start : lastChange+1+context]
					out = append(out, open)
				}
				start = max(0, i-context)
				open = hunk{oldBefore: oldLine - (i - start), newBefore: newLine - (i - start)}
			}
			lastChange = i
		}
		if e.kind != '+' {
			oldLine++
		}
		if e.kind != '-' {
			newLine++
		}
	}
	if start >= 0 {
		open.edits = edits[start:min(len(edits), lastChange+1+context)]
		out = append(out, open)
	}
	return out
}

func (h hunk) write(b *strings.Builder) {
	olds, news := 0, 0
	for _, e := range h.edits {
		if e.kind != '+' {
			olds++
		}
		if e.kind != '-' {
			news++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(h.oldBefore, olds), span(h.newBefore, news))
	for _, e := range h.edits {
		b.WriteByte(e.kind)
		b.WriteString(e.line)
		if !strings.HasSuffix(e.line, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// span writes a range of lines; one of none stands at the line before it.
func span(before, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", before)
	case 1:
		return strconv.Itoa(before + 1)
	}
	return fmt.Sprintf("%d,%d", before+1, n)
}
