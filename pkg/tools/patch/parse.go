package patch

import (
	"fmt"
	"strings"
)

// A SyntaxError says what in a patch is not as it must be.
type SyntaxError struct {
	Line   int    // of the patch; 0: all of it
	Text   string // what stands there
	Reason string
}

func (e *SyntaxError) Error() string {
	switch {
	case e.Line == 0:
		return "the patch " + e.Reason
	case e.Text == "":
		return fmt.Sprintf("line %d of the patch: %s", e.Line, e.Reason)
	}
	return fmt.Sprintf("line %d of the patch, %.120q: %s", e.Line, e.Text, e.Reason)
}

// Parse reads a unified diff. A last line without a line end gets one: that a
// file has none there is for its marker to say. Where all lines end in CR LF, the
// CR belongs to the headers' line ends too.
func Parse(text string) (Patch, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return Patch{}, &SyntaxError{Reason: "is empty; it begins with a line --- and the file's name"}
	case strings.ContainsRune(text, 0):
		return Patch{}, &SyntaxError{Reason: "has a NUL; only text can be patched"}
	}
	p := parser{crlf: AllCRLF([]byte(text))}
	if !strings.HasSuffix(text, "\n") {
		if p.crlf {
			text += "\r"
		}
		text += "\n"
	}
	p.lines = splitLines(text)
	var out Patch
	for p.at < len(p.lines) {
		if p.blank() {
			p.at++
			continue
		}
		f, err := p.file()
		if err != nil {
			return Patch{}, err
		}
		out.Files = append(out.Files, f)
	}
	return out, once(out)
}

// once refuses two headers for one file.
func once(p Patch) error {
	lines := map[string]int{}
	for _, f := range p.Files {
		if first := lines[f.Name]; first != 0 {
			return &SyntaxError{Line: f.Line, Text: f.Name, Reason: fmt.Sprintf("this file has a header at line %d already; put all its hunks below that", first)}
		}
		lines[f.Name] = f.Line
	}
	return nil
}

// A parser stands at one line of a patch.
type parser struct {
	lines []string
	at    int
	crlf  bool // every line ends in CR LF
}

// text is line i without its line end; empty behind the last.
func (p *parser) text(i int) string {
	if i >= len(p.lines) {
		return ""
	}
	line := strings.TrimSuffix(p.lines[i], "\n")
	if p.crlf {
		line = strings.TrimSuffix(line, "\r")
	}
	return line
}

func (p *parser) blank() bool { return p.text(p.at) == "" }

// starts reports whether something new begins at line i: a file, a hunk, or the
// end of the patch.
func (p *parser) starts(i int) bool {
	line := p.text(i)
	return i >= len(p.lines) || strings.HasPrefix(line, "@@") || strings.HasPrefix(line, "diff --git ") ||
		strings.HasPrefix(line, "--- ") && strings.HasPrefix(p.text(i+1), "+++ ")
}

func (p *parser) fault(i int, format string, a ...any) error {
	return &SyntaxError{Line: i + 1, Text: p.text(i), Reason: fmt.Sprintf(format, a...)}
}

// file reads the headers of one file and its hunks.
func (p *parser) file() (File, error) {
	start := p.at
	g, err := p.git()
	if err != nil {
		return File{}, err
	}
	if !strings.HasPrefix(p.text(p.at), "--- ") {
		return File{}, p.fault(p.at, "%s", stray(p.text(p.at)))
	}
	if !strings.HasPrefix(p.text(p.at+1), "+++ ") {
		return File{}, p.fault(p.at, "a line +++ with the file's name must follow it")
	}
	f, err := p.names()
	if err != nil {
		return File{}, err
	}
	f.Line = start + 1
	if err := g.agrees(&f); err != nil {
		return File{}, p.fault(start, "%v", err)
	}
	for strings.HasPrefix(p.text(p.at), "@@") {
		h, err := p.hunk()
		if err != nil {
			return File{}, err
		}
		f.Hunks = append(f.Hunks, h)
	}
	return f, p.whole(f)
}

// whole looks at what the hunks of a file are together.
func (p *parser) whole(f File) error {
	if len(f.Hunks) == 0 {
		return p.fault(f.Line-1, "no hunk follows this header; a hunk begins with @@ -line,count +line,count @@")
	}
	end := 0 // of the hunk before, in the old file
	for i, h := range f.Hunks {
		old, new := len(h.side('-')), len(h.side('+'))
		at := h.Line - 1
		switch {
		case (f.Create || f.Delete) && len(f.Hunks) > 1:
			return p.fault(at, "a file that is made or deleted has one hunk with all of its lines")
		case f.Create && (old > 0 || h.At != 0):
			return p.fault(at, "a new file has no lines before: its hunk begins with @@ -0,0 +1,%d @@ and has lines with + only", new)
		case f.Delete && (new > 0 || h.At != 1):
			return p.fault(at, "of a deleted file no line stays: its hunk begins with @@ -1,%d +0,0 @@ and has all lines of the file, each with -", old)
		case h.before() < end:
			return p.fault(at, "it begins at line %d, before the end of the hunk above it; hunks stand in the order of the file and do not overlap", h.At)
		case i > 0 && p.ends(f.Hunks[i-1]):
			return p.fault(at, `it stands behind a hunk with "\ No newline at end of file", which is at the end of the file`)
		}
		end = h.before() + old
	}
	return nil
}

// ends reports whether a hunk says that the file ends with it.
func (p *parser) ends(h Hunk) bool {
	for _, l := range h.Lines {
		if !strings.HasSuffix(l.Text, "\n") {
			return true
		}
	}
	return false
}
