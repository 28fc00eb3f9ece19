package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Names of files are bytes, and paths in parameters are text. A byte that is not
// UTF-8, or a control character, is written \xNN, and so is a backslash before an
// x; everything else stands for itself. A name has one spelling only.

// showName writes a name, or a path, as text that readName takes back.
func showName(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < ' ', r == 0x7f, r == '\\' && strings.HasPrefix(name[i+1:], "x"):
			fmt.Fprintf(&b, `\x%02x`, name[i])
			size = 1
		default:
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	return b.String()
}

// readName reads what showName wrote. A spelling that showName would not have
// chosen is an error, so that no rule about paths can be walked around by another.
func readName(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); {
		c, ok := escaped(text[i:])
		if !ok {
			b.WriteByte(text[i])
			i++
			continue
		}
		b.WriteByte(c)
		i += len(`\xNN`)
	}
	name := b.String()
	if strings.IndexByte(name, 0) >= 0 {
		return name, nil // which is denied wherever it is used
	}
	if plain := showName(name); plain != text {
		return "", fmt.Errorf("path %q is to be written %q", text, plain)
	}
	return name, nil
}

// escaped reads \xNN, as far as it stands for a byte that has to be written so.
func escaped(text string) (byte, bool) {
	const digits = "0123456789abcdef"
	if len(text) < 4 || text[0] != '\\' || text[1] != 'x' {
		return 0, false
	}
	high, low := strings.IndexByte(digits, text[2]), strings.IndexByte(digits, text[3])
	if high < 0 || low < 0 {
		return 0, false
	}
	c := byte(high<<4 | low)
	return c, c >= utf8.RuneSelf || c < ' ' || c == 0x7f || c == '\\'
}

// visible makes a message fit to be told where it names such files.
func visible(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, text[i])
		} else {
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}
