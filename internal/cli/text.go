package cli

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible makes everything in s show that a terminal would obey or hide:
// control characters, bytes that are no UTF-8, and Unicode that has no shape,
// turns the direction of text, or looks like a space. Line ends and tabs stay.
func Visible(s string) string {
	if !hidesAny(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hidden(r):
			b.WriteRune(r)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
		i += n
	}
	return b.String()
}

func hidesAny(s string) bool {
	if !utf8.ValidString(s) {
		return true
	}
	for _, r := range s {
		if hidden(r) {
			return true
		}
	}
	return false
}

// blank are characters that count as printable and show nothing.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x034f, 0x034f, 1}, {0x115f, 0x1160, 1}, {0x17b4, 0x17b5, 1}, {0x180b, 0x180f, 1},
		{0x2800, 0x2800, 1}, {0x3164, 0x3164, 1}, {0xfe00, 0xfe0f, 1}, {0xffa0, 0xffa0, 1},
	},
	R32: []unicode.Range32{{0xe0100, 0xe01ef, 1}},
}

func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (!unicode.IsPrint(r) || unicode.Is(blank, r))
}

// Line is [Visible] text on one line, at most max characters long.
func Line(s string, max int) string {
	s = strings.TrimRight(s, "\n")
	s = strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(Visible(s))
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	r := []rune(s)
	return string(r[:max-1]) + "…"
}

// Argv shows arguments so that each is told from the next: what is not a plain
// word is quoted.
func Argv(argv []string) string {
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i] = Word(a)
	}
	return strings.Join(words, " ")
}

// Word is one argument, quoted unless it is plain.
func Word(s string) string {
	for _, r := range s {
		if r >= 0x80 || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-+=./,:@%", r) {
			return Visible(strconv.Quote(s))
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// Bytes is a size as people read it.
func Bytes(n int) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
