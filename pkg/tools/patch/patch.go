package patch

import (
	"bytes"
	"strings"
)

// A Patch is what one diff says of several files, each named once.
type Patch struct{ Files []File }

// A File is what a patch says of one file.
type File struct {
	Name   string // as the patch has it, without the a/ and b/ of git
	Bare   bool   // Name stood behind a/ or b/, and nothing but that said so: it may be a directory's name
	Create bool   // the old name is /dev/null
	Delete bool   // the new name is /dev/null
	Line   int    // of the patch, at which it begins
	Hunks  []Hunk
}

// A Hunk is a run of lines that stay, go and come.
type Hunk struct {
	Line  int // of the patch, at which it begins
	At    int // line of the old file at which it begins; 0: before the first
	Lines []Line
}

// A Line is one line of a hunk: it stays (' '), goes ('-') or comes ('+'). Text
// has its line end, unless no newline is to end it.
type Line struct {
	Kind byte
	Text string
}

// side returns the lines of the file before ('-') or after ('+').
func (h Hunk) side(kind byte) []string {
	var out []string
	for _, l := range h.Lines {
		if l.Kind == ' ' || l.Kind == kind {
			out = append(out, l.Text)
		}
	}
	return out
}

// before is how many lines of the old file stand before the hunk by its header.
func (h Hunk) before() int {
	if len(h.side('-')) == 0 {
		return h.At
	}
	return h.At - 1
}

// splitLines splits behind each newline; only the last may lack one.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	out := strings.SplitAfter(text, "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// AllCRLF reports whether every newline of data stands behind a CR, and there is
// one.
func AllCRLF(data []byte) bool {
	n := bytes.Count(data, []byte("\n"))
	return n > 0 && n == bytes.Count(data, []byte("\r\n"))
}
