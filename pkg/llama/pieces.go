package llama

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// pieces puts a text together that comes in parts. A character whose bytes come
// in two parts is told whole, and bytes that are none become U+FFFD.
type pieces struct {
	text  strings.Builder
	open  []byte       // the beginning of a character
	onAdd func(string) // may be nil
}

func newPieces(onAdd func(string)) *pieces { return &pieces{onAdd: onAdd} }

// add takes the next part; nil is none.
func (p *pieces) add(part *rawText) {
	if part == nil || len(*part) == 0 {
		return
	}
	p.open = append(p.open, *part...)
	whole := len(p.open) - unfinished(p.open)
	p.tell(p.open[:whole])
	p.open = append(p.open[:0], p.open[whole:]...)
}

// end returns the whole text.
func (p *pieces) end() string {
	p.tell(p.open)
	p.open = nil
	return p.text.String()
}

func (p *pieces) tell(b []byte) {
	if len(b) == 0 {
		return
	}
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	p.text.WriteString(s)
	if p.onAdd != nil {
		p.onAdd(s)
	}
}

// unfinished is how many bytes at the end of b begin a character that is not
// there in full.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// rawText is a JSON string as bytes: encoding/json would make each half of a
// character that was cut in two U+FFFD.
type rawText []byte

// UnmarshalJSON implements json.Unmarshaler. It is given valid JSON, whose
// strings may hold any bytes all the same; null is an empty text.
func (t *rawText) UnmarshalJSON(data []byte) error {
	*t = nil
	if len(data) < 2 || data[0] != '"' {
		return nil
	}
	out := make([]byte, 0, len(data))
	for data = data[1 : len(data)-1]; len(data) > 0; {
		if data[0] != '\\' {
			out, data = append(out, data[0]), data[1:]
			continue
		}
		c := data[1]
		data = data[2:]
		if i := strings.IndexByte("bfnrt", c); i >= 0 {
			c = "\b\f\n\r\t"[i]
		}
		if c != 'u' {
			out = append(out, c)
			continue
		}
		var r rune
		if r, data = escaped(data); utf16.IsSurrogate(r) && len(data) > 1 && data[0] == '\\' && data[1] == 'u' {
			low, rest := escaped(data[2:])
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				r, data = pair, rest
			}
		}
		out = utf8.AppendRune(out, r)
	}
	*t = out
	return nil
}

// escaped reads the four digits behind \u.
func escaped(data []byte) (r rune, rest []byte) {
	for _, c := range data[:4] {
		d := rune(c|0x20) - 'a' + 10
		if c <= '9' {
			d = rune(c - '0')
		}
		r = r<<4 | d
	}
	return r, data[4:]
}
