package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxCell is how wide a column may get, in characters.
const maxCell = 80

// Table prints rows under a header, in columns. Cells are untrusted.
func Table(w io.Writer, s Style, header []string, rows [][]string) {
	width := make([]int, len(header))
	lines := [][]string{header}
	for _, row := range rows {
		line := make([]string, len(header))
		for i := range header {
			if i < len(row) {
				line[i] = Line(row[i], maxCell)
			}
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		for i, c := range line {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for n, line := range lines {
		var b strings.Builder
		for i, c := range line {
			b.WriteString(c)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2))
			}
		}
		text := strings.TrimRight(b.String(), " ")
		if n == 0 {
			text = s.Bold(text)
		}
		fmt.Fprintln(w, text)
	}
}

// JSON prints one value, indented.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// JSONLine prints one value on one line.
func JSONLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
