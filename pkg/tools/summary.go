package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SummarySize is how large a text in a receipt may be, in bytes as JSON.
const SummarySize = 64 << 10

// Summary makes text fit for a receipt: valid UTF-8, no control characters but
// tab and newlines, and at most limit bytes long when written as JSON. Of a
// longer text its beginning and its end stay, with a line between that counts
// what is gone.
func Summary(text string, limit int) string {
	clean := strings.ToValidUTF8(text, "\uFFFD")
	clean = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, clean)
	if jsonSize(clean) <= limit {
		return clean
	}
	room := (limit - 64) / 2 // the line between is shorter than 64
	head := prefix(clean, room)
	tail := suffix(clean[head:], room)
	gone := len(clean) - head - tail
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", clean[:head], gone, clean[len(clean)-tail:])
}

// jsonRune is how many bytes a rune takes in a JSON string.
func jsonRune(r rune, size int) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\t' || r == '\r':
		return 2
	case r == '\u2028' || r == '\u2029' || r < ' ':
		return 6
	}
	return size
}

func jsonSize(s string) int {
	n := 0
	for _, r := range s {
		n += jsonRune(r, utf8.RuneLen(r))
	}
	return n
}

// prefix is how many bytes of s fit in room.
func prefix(s string, room int) int {
	for i, r := range s {
		if room -= jsonRune(r, utf8.RuneLen(r)); room < 0 {
			return i
		}
	}
	return len(s)
}

// suffix is how many bytes at the end of s fit in room.
func suffix(s string, room int) int {
	n := 0
	for len(s) > 0 {
		r, size := utf8.DecodeLastRuneInString(s)
		if room -= jsonRune(r, size); room < 0 {
			break
		}
		n, s = n+size, s[:len(s)-size]
	}
	return n
}
