package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"correx/internal/cli"
)

// clock is how times are shown.
const clock = "2006-01-02 15:04:05.000 UTC"

func shown(t time.Time) string { return t.UTC().Format(clock) }

// A Piece is a part of a text: as it is, or, Hidden, the name of what would not
// show, or would make what stands beside it look otherwise.
type Piece struct {
	Text   string
	Hidden bool
}

// pieces takes a text apart.
func pieces(s string) []Piece {
	var all []Piece
	plain := 0
	for i := 0; i < len(s); {
		n := width(s[i:])
		if name := cli.Visible(s[i : i+n]); name != s[i:i+n] {
			if plain < i {
				all = append(all, Piece{s[plain:i], false})
			}
			all = append(all, Piece{name, true})
			plain = i + n
		}
		i += n
	}
	if plain < len(s) {
		all = append(all, Piece{s[plain:], false})
	}
	return all
}

// width is the number of bytes of the first character, 1 for what is none.
func width(s string) int {
	for k := range s {
		if k > 0 {
			return k
		}
	}
	return len(s)
}

// A Line is a line of a unified diff, with its kind as the page styles it.
type Line struct {
	Kind string
	Text string
}

func lines(diff string) []Line {
	var all []Line
	for _, l := range strings.Split(strings.TrimSuffix(diff, "\n"), "\n") {
		kind := ""
		switch {
		case strings.HasPrefix(l, "+++ "), strings.HasPrefix(l, "--- "):
			kind = "file"
		case strings.HasPrefix(l, "@@"):
			kind = "at"
		case strings.HasPrefix(l, "+"):
			kind = "add"
		case strings.HasPrefix(l, "-"):
			kind = "del"
		}
		all = append(all, Line{kind, l})
	}
	return all
}

// took is a duration for people.
func took(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// indent is JSON with line ends, whose values stay as they are.
func indent(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
