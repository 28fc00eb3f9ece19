package patch

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Render writes the patch of one file for the program patch, as name, which must be
// plain. Each hunk says where it stands, and has so much of the file around it
// that it fits there and nowhere else by chance.
func (f File) Render(r Result, name string) []byte {
	old, new := name, name
	if f.Create {
		old = devNull
	}
	if f.Delete {
		new = devNull
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", old, new)
	delta := 0 // lines that the hunks before added
	for i, h := range r.hunks {
		from, to := 0, len(r.old) // what the neighbours leave
		if i > 0 {
			from = r.hunks[i-1].end()
		}
		if i+1 < len(r.hunks) {
			to = r.hunks[i+1].before()
		}
		h = h.around(r.old, from, to)
		h.write(&b, delta)
		delta += len(h.side('+')) - len(h.side('-'))
	}
	return b.Bytes()
}

// end is the number of the last old line of a hunk that is in its place.
func (h Hunk) end() int { return h.before() + len(h.side('-')) }

// context is how many unchanged lines stand around a change. A hunk with fewer
// below than above counts as one at the end of the file.
const context = 3

// around gives a hunk that is in its place three unchanged lines on either side,
// as far as there are.
func (h Hunk) around(lines []string, from, to int) Hunk {
	above, below := h.unchanged()
	start, end := h.before()+above, h.end()-below
	top := max(from, start-context)
	bottom := min(to, end+context)
	if bottom-end < start-top && bottom < len(lines) {
		top = start - (bottom - end)
	}
	out := Hunk{Line: h.Line, At: top + 1}
	for _, l := range lines[top:start] {
		out.Lines = append(out.Lines, Line{' ', l})
	}
	out.Lines = append(out.Lines, h.Lines[above:len(h.Lines)-below]...)
	for _, l := range lines[end:bottom] {
		out.Lines = append(out.Lines, Line{' ', l})
	}
	if len(out.side('-')) == 0 {
		out.At = top
	}
	return out
}

// unchanged counts the lines that stay at a hunk's beginning and at its end.
func (h Hunk) unchanged() (above, below int) {
	stays := func(l Line) bool { return l.Kind == ' ' }
	changes := func(l Line) bool { return !stays(l) }
	above = slices.IndexFunc(h.Lines, changes)
	for below < len(h.Lines) && stays(h.Lines[len(h.Lines)-1-below]) {
		below++
	}
	return above, below
}

func (h Hunk) write(b *bytes.Buffer, delta int) {
	old, new := len(h.side('-')), len(h.side('+'))
	before := h.before()
	start := before + delta
	if new > 0 {
		start++
	}
	at := before
	if old > 0 {
		at++
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(at, old), span(start, new))
	for _, l := range h.Lines {
		b.WriteByte(l.Kind)
		b.WriteString(l.Text)
		if !strings.HasSuffix(l.Text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
