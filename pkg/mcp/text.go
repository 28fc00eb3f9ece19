package mcp

import (
	"bytes"
	"strings"
	"unicode"

	"correx/pkg/tools"
)

// lastLines is the end of what a process printed, fit to be shown.
func lastLines(c tools.Capture) string {
	text := c.Head
	if len(c.Tail) > 0 {
		text = c.Tail
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return visible(string(bytes.Join(lines[max(0, len(lines)-5):], []byte("\n"))), 1<<10)
}

// visible is a stranger's text, bounded, and with nothing in it that cannot be
// seen or that turns the order of what can.
func visible(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return '\uFFFD'
		}
		return r
	}, text)
	return tools.Summary(text, limit)
}

func short(line []byte) string { return visible(string(line[:min(len(line), 80)]), 200) }
