package tools

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// An encoding is how a file writes text, as far as its bytes tell.
type encoding string

const (
	asUTF8    encoding = "UTF-8"
	asUTF8BOM encoding = "UTF-8 with a byte order mark"
	asUTF16LE encoding = "UTF-16 LE"
	asUTF16BE encoding = "UTF-16 BE"
	asBroken  encoding = "UTF-8 with invalid bytes"
	asUnknown encoding = "unknown, 8 bits a character"
	asBinary  encoding = "binary"
)

const utf8BOM = "\uFEFF"

// A fileText is a file as text.
type fileText struct {
	encoding encoding
	text     string // UTF-8; empty for what is binary
	lines    int
	ends     string // "LF", "CR LF", "mixed: …", "none"
}

// readText tells what kind of text data is.
func readText(data []byte) fileText {
	t := fileText{encoding: encodingOf(data)}
	switch t.encoding {
	case asBinary:
		return t
	case asUTF16LE:
		t.text = utf16Text(data[2:], binary.LittleEndian)
	case asUTF16BE:
		t.text = utf16Text(data[2:], binary.BigEndian)
	case asUTF8BOM:
		t.text = string(data[len(utf8BOM):])
	case asBroken:
		t.text = visible(string(data))
	case asUnknown:
		t.text = latin1Text(data)
	default:
		t.text = string(data)
	}
	t.lines = countLines(t.text)
	t.ends = lineEnds(t.text)
	return t
}

func encodingOf(data []byte) encoding {
	switch {
	case bytes.HasPrefix(data, []byte(utf8BOM)) && utf8.Valid(data) && !garbled(data):
		return asUTF8BOM
	case bytes.HasPrefix(data, []byte{0xff, 0xfe}) && isUTF16(data[2:], binary.LittleEndian):
		return asUTF16LE
	case bytes.HasPrefix(data, []byte{0xfe, 0xff}) && isUTF16(data[2:], binary.BigEndian):
		return asUTF16BE
	case garbled(data):
		return asBinary
	case utf8.Valid(data):
		return asUTF8
	}
	wide, bad := 0, 0 // characters of several bytes, and bytes that are none
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			bad++
		case size > 1:
			wide++
		}
		i += size
	}
	if wide > bad {
		return asBroken
	}
	return asUnknown
}

// garbled reports whether data is no text in an encoding of bytes: it has a NUL,
// or more than one control character in twenty.
func garbled(data []byte) bool {
	controls := 0
	for _, c := range data {
		switch {
		case c == 0:
			return true
		case c < ' ' && !strings.ContainsRune("\t\n\v\f\r\x1b", rune(c)), c == 0x7f:
			controls++
		}
	}
	return controls*20 > len(data)
}

// isUTF16 reports whether data is text in UTF-16: whole units, none of them 0,
// surrogates in pairs. A file in UTF-32 has units that are 0.
func isUTF16(data []byte, order binary.ByteOrder) bool {
	if len(data)%2 != 0 {
		return false
	}
	for _, r := range utf16.Decode(units(data, order)) {
		if r == 0 || r == utf8.RuneError {
			return false
		}
	}
	return true
}

func units(data []byte, order binary.ByteOrder) []uint16 {
	out := make([]uint16, len(data)/2)
	for i := range out {
		out[i] = order.Uint16(data[2*i:])
	}
	return out
}

func utf16Text(data []byte, order binary.ByteOrder) string {
	return string(utf16.Decode(units(data, order)))
}

// latin1Text reads each byte as the character of its number; those between the
// letters, which are control characters, are shown as \xNN.
func latin1Text(data []byte) string {
	var b strings.Builder
	for _, c := range data {
		if c >= 0x80 && c < 0xa0 {
			fmt.Fprintf(&b, `\x%02x`, c)
			continue
		}
		b.WriteRune(rune(c))
	}
	return b.String()
}

// countLines counts lines; the last one need not end.
func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

func lineEnds(text string) string {
	all, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case all == 0:
		return "none"
	case crlf == 0:
		return "LF"
	case crlf == all:
		return "CR LF"
	}
	return fmt.Sprintf("mixed: %d LF, %d CR LF", all-crlf, crlf)
}

// fitText makes text fit into a file that has before in it: with its line ends and
// its byte order mark, where whole replaces all of it. It is an error where the
// file would get two encodings.
func fitText(before []byte, text string, whole bool) (string, error) {
	enc := encodingOf(before)
	switch {
	case enc == asUTF16LE || enc == asUTF16BE:
		return "", fmt.Errorf("it is %s, and only UTF-8 is written; to make it UTF-8, delete it and write it anew", enc)
	case enc == asBinary && !whole:
		return "", fmt.Errorf("it is binary (%d bytes) and not to be edited as text", len(before))
	case (enc == asUnknown || enc == asBroken) && !isASCII(text):
		return "", fmt.Errorf("its encoding is %s, and the new text has characters beyond ASCII, which would be in another; to make it UTF-8, delete it and write it anew", enc)
	}
	text = likeFile(before, text)
	if whole && enc == asUTF8BOM && !strings.HasPrefix(text, utf8BOM) {
		text = utf8BOM + text
	}
	return text, nil
}

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}
