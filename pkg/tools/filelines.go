package tools

import (
	"fmt"
	"strings"
)

// show is the text as a model is told it: whole, or the lines that it asked for.
// What is not plain UTF-8, and which lines these are, stands in brackets below.
func (t fileText) show(q fileRequest) (string, error) {
	text, note := t.text, ""
	if q.Offset != nil || q.Limit != nil {
		var err error
		if text, note, err = t.some(q); err != nil {
			return "", err
		}
	} else if t.lines == 0 {
		note = "(the file is empty)"
	}
	switch t.encoding {
	case asUTF8:
	case asUTF8BOM:
		note = joinNotes(note, "[encoding: "+string(t.encoding)+", which stays when the file is changed]")
	default:
		note = joinNotes(note, "[encoding: "+string(t.encoding)+"; shown as UTF-8]")
	}
	return joinNotes(text, note), nil
}

// joinNotes puts b on a line below a.
func joinNotes(a, b string) string {
	if a == "" || b == "" || strings.HasSuffix(a, "\n") {
		return a + b
	}
	return a + "\n" + b
}

// some takes the lines that are asked for, as far as they fit, and a note that
// says which they are and how to go on.
func (t fileText) some(q fileRequest) (text, note string, err error) {
	from, most := 1, t.lines
	if q.Offset != nil {
		from = *q.Offset
	}
	if q.Limit != nil {
		most = *q.Limit
	}
	switch {
	case t.lines == 0:
		return "", "(the file is empty)", nil
	case from > t.lines:
		return "", "", fmt.Errorf("%s has %s; offset %d is behind its end", q.asked, plural(t.lines, "line"), from)
	}
	lines := strings.SplitAfter(t.text, "\n")
	var b strings.Builder
	n := from
	for ; n <= t.lines && n-from < most; n++ {
		line := lines[n-1]
		if b.Len()+len(line) > maxRange && n > from {
			break
		}
		if len(line) > maxRange {
			cut := strings.ToValidUTF8(line[:maxRange], "")
			return cut, fmt.Sprintf("[line %d of %d is %d bytes long, of which these are the first %d%s]", n, t.lines, len(line), len(cut), goOn(n+1, t.lines)), nil
		}
		b.WriteString(line)
	}
	which := fmt.Sprintf("lines %d to %d", from, n-1)
	if n-1 == from {
		which = fmt.Sprintf("line %d", from)
	}
	return b.String(), fmt.Sprintf("[%s of %d%s]", which, t.lines, goOn(n, t.lines)), nil
}

func goOn(next, all int) string {
	if next > all {
		return ", the end of the file"
	}
	return fmt.Sprintf("; to go on, use offset %d", next)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
