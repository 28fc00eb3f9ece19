package patch

import (
	"bytes"
	"slices"
	"strings"
)

// A Result is what a patch makes of one file.
type Result struct {
	Data   []byte
	Exists bool
	Places []Place
	hunks  []Hunk // with the line ends of the file
	old    []string
}

// A Place is where a hunk stands.
type Place struct {
	Hunk   int // line of the patch
	Line   int // of the old file, from 1; the one behind which it adds, if it removes and keeps none
	Offset int // lines further down than its header says; negative: further up
}

// Apply says what becomes of a file that is old, or that does not exist. Hunks in
// LF go into a file that has CR LF throughout as if they had it too.
func (f File) Apply(old []byte, exists bool) (Result, error) {
	switch {
	case f.Create && exists:
		return Result{}, &MismatchError{Hunk: f.Line, Reason: "the patch makes this file, and it exists already; to change it, write its name in the line --- too"}
	case !f.Create && !exists:
		return Result{}, &MismatchError{Hunk: f.Line, Reason: "there is no such file; to make it, write --- /dev/null and a hunk @@ -0,0 +1,count @@"}
	}
	r := Result{Exists: !f.Delete, old: splitLines(string(old)), hunks: likeFile(f.Hunks, old)}
	var out bytes.Buffer
	end := 0 // of the hunk before
	for i, h := range r.hunks {
		at, err := h.locate(r.old, end)
		if err != nil {
			return Result{}, err
		}
		if err := h.fitsEnd(r.old, at, f.Delete); err != nil {
			return Result{}, err
		}
		for _, l := range r.old[end:at] {
			out.WriteString(l)
		}
		for _, l := range h.side('+') {
			out.WriteString(l)
		}
		place := Place{Hunk: h.Line, Line: at + 1, Offset: at - h.before()}
		if len(h.side('-')) == 0 {
			place.Line = at
		}
		r.Places = append(r.Places, place)
		end = at + len(h.side('-'))
		r.hunks[i].At = place.Line
	}
	for _, l := range r.old[end:] {
		out.WriteString(l)
	}
	r.Data = out.Bytes()
	if r.Exists && exists && bytes.Equal(r.Data, old) {
		return Result{}, &MismatchError{Hunk: f.Line, Reason: "the patch changes nothing in it: what it removes is what it adds"}
	}
	return r, nil
}

// likeFile gives hunks the line ends of a file that has CR LF throughout.
func likeFile(hunks []Hunk, old []byte) []Hunk {
	out := slices.Clone(hunks)
	if !AllCRLF(old) || slices.ContainsFunc(hunks, Hunk.hasCR) {
		return out
	}
	for i, h := range out {
		out[i].Lines = slices.Clone(h.Lines)
		for k, l := range h.Lines {
			if line, ok := strings.CutSuffix(l.Text, "\n"); ok {
				out[i].Lines[k].Text = line + "\r\n"
			}
		}
	}
	return out
}

func (h Hunk) hasCR() bool {
	return slices.ContainsFunc(h.Lines, func(l Line) bool { return strings.Contains(l.Text, "\r") })
}

// locate finds the line before which a hunk stands: where its header says, or
// else at the only place where it fits. Lines before from belong to the hunk
// above.
func (h Hunk) locate(lines []string, from int) (int, error) {
	want, stated := h.side('-'), h.before()
	if len(want) == 0 {
		if len(lines) == 0 && stated == 0 {
			return 0, nil
		}
		return 0, h.mismatch("it has only lines with +, so nothing says where they go; put the lines around them into the hunk, with a blank before each")
	}
	if stated >= from && fits(lines, stated, want) {
		return stated, nil
	}
	var at []int
	for i := from; i+len(want) <= len(lines); i++ {
		if fits(lines, i, want) {
			at = append(at, i)
		}
	}
	switch len(at) {
	case 0:
		return 0, h.nowhere(lines, from)
	case 1:
		return at[0], nil
	}
	return 0, h.mismatch("it does not fit at line %d, where it says, but at the lines %s; write the line that is meant into @@, or more lines around it",
		h.At, listed(at))
}

func fits(lines []string, at int, want []string) bool {
	return at+len(want) <= len(lines) && slices.Equal(lines[at:at+len(want)], want)
}

// fitsEnd holds a hunk that says where the file ends against where it does.
func (h Hunk) fitsEnd(lines []string, at int, deletes bool) error {
	end := at + len(h.side('-'))
	if deletes && (at != 0 || end != len(lines)) {
		return h.mismatch("the file has %d lines and the hunk removes %d of them; a file is deleted by a hunk that removes all", len(lines), len(h.side('-')))
	}
	new := h.side('+')
	if len(new) > 0 && !strings.HasSuffix(new[len(new)-1], "\n") && end != len(lines) {
		return h.mismatch(`it says that no newline ends its last line, so it must be at the end of the file, which goes on at line %d with %.80q`, end+1, lines[end])
	}
	return nil
}
