package patch

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var hunkHeader = regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: .*)?$`)

// hunk reads one hunk, whose counts must be those of its lines.
func (p *parser) hunk() (Hunk, error) {
	header := p.at
	m := hunkHeader.FindStringSubmatch(p.text(header))
	if m == nil {
		return Hunk{}, p.fault(header, "a hunk begins with @@ -line,count +line,count @@, such as @@ -1,3 +1,4 @@")
	}
	h := Hunk{Line: header + 1, At: number(m[1], 0)}
	old, new := number(m[2], 1), number(m[4], 1)
	p.at++
	for old > 0 || new > 0 {
		kind, ok := p.kind(old, new)
		if !ok {
			return h, p.miscounted(header, h.At)
		}
		if kind != '+' {
			old--
		}
		if kind != '-' {
			new--
		}
		h.Lines = append(h.Lines, p.line(kind))
		if err := p.marker(&h); err != nil {
			return h, err
		}
	}
	if !p.starts(p.at) && !p.blanks() {
		return h, p.after(header, h.At)
	}
	return h, p.sound(header, h)
}

// kind is what the line of a hunk at which the parser stands does, as far as the
// counts have room for it. An empty line is an empty one that stays, whose
// blank got lost.
func (p *parser) kind(old, new int) (byte, bool) {
	if p.at >= len(p.lines) {
		return 0, false
	}
	kind := byte(' ')
	if line := p.text(p.at); line != "" {
		kind = line[0]
	}
	switch kind {
	case ' ':
		return kind, old > 0 && new > 0
	case '-':
		return kind, old > 0
	case '+':
		return kind, new > 0
	}
	return 0, false
}

func (p *parser) line(kind byte) Line {
	text := p.lines[p.at]
	if p.text(p.at) != "" {
		text = text[1:]
	}
	p.at++
	return Line{Kind: kind, Text: text}
}

// marker takes the line that says of the one before that no newline ends it.
func (p *parser) marker(h *Hunk) error {
	if !strings.HasPrefix(p.text(p.at), `\ `) {
		return nil
	}
	last := &h.Lines[len(h.Lines)-1]
	last.Text = strings.TrimSuffix(last.Text, "\n")
	if p.crlf {
		last.Text = strings.TrimSuffix(last.Text, "\r")
	}
	if last.Text == "" {
		return p.fault(p.at, "it stands behind an empty line; an empty line that no newline ends is no line")
	}
	p.at++
	return nil
}

// blanks reports whether nothing but empty lines stands before the next file or
// the end, where they do no harm.
func (p *parser) blanks() bool {
	i := p.at
	for i < len(p.lines) && p.text(i) == "" {
		i++
	}
	return i > p.at && p.starts(i) && !strings.HasPrefix(p.text(i), "@@")
}

// sound looks at a hunk as a whole.
func (p *parser) sound(header int, h Hunk) error {
	changes := false
	for i, l := range h.Lines {
		changes = changes || l.Kind != ' '
		if strings.HasSuffix(l.Text, "\n") {
			continue
		}
		for _, later := range h.Lines[i+1:] {
			if l.Kind == ' ' || later.Kind == ' ' || later.Kind == l.Kind {
				return p.fault(header+1+i, `"\ No newline at end of file" follows it, and more lines of the same file after that`)
			}
		}
	}
	switch {
	case !changes:
		return p.fault(header, "the hunk changes nothing: it has no line with + or -")
	case h.At == 0 && len(h.side('-')) > 0:
		return p.fault(header, "lines are counted from 1")
	}
	return nil
}

// miscounted says what the header of a hunk must be for the lines below it.
func (p *parser) miscounted(header, at int) error {
	if line := p.text(p.at); strings.HasPrefix(line, `\`) {
		return p.fault(p.at, "%s", stray(line))
	}
	old, new, end := p.count(header + 1)
	if !p.starts(end) && (end == header+1 || strings.TrimSpace(p.text(end)) != "") {
		return p.fault(end, "it is no line of a hunk; each begins with a blank, - or +%s", hint(p.text(end)))
	}
	return p.fault(header, "the counts do not fit: below it are %d lines with a blank or -, and %d with a blank or +, so it must begin with @@ -%s +%s @@",
		old, new, span(at, old), span(max(at, 1), new))
}

// after says what stands behind a hunk whose counts are used up.
func (p *parser) after(header, at int) error {
	if line := p.text(p.at); line != "" && !strings.ContainsRune(" +-", rune(line[0])) {
		return p.fault(p.at, "%s", stray(line))
	}
	return p.miscounted(header, at)
}

// count counts the lines of a hunk whatever its header says; end is the first
// that is none.
func (p *parser) count(from int) (old, new, end int) {
	for end = from; !p.starts(end); end++ {
		line := p.text(end)
		switch {
		case line == "":
			rest := end
			for rest < len(p.lines) && p.text(rest) == "" {
				rest++
			}
			if p.starts(rest) {
				return old, new, rest
			}
			old, new = old+1, new+1
		case line[0] == ' ':
			old, new = old+1, new+1
		case line[0] == '-':
			old++
		case line[0] == '+':
			new++
		case line[0] != '\\':
			return old, new, end
		}
	}
	return old, new, end
}

func number(digits string, absent int) int {
	if digits == "" {
		return absent
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0 // nine digits always are a number
	}
	return n
}

func span(at, n int) string { return fmt.Sprintf("%d,%d", at, n) }
