package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// A Card is a question to a person: exactly what an approval would permit.
type Card struct {
	Session    string
	Invocation string
	Tool       string
	Tier       string
	Why        string // the rule or mode that asks
	Notes      []string
	Found      []string // what its worker found when it looked
	ReviewOf   string   // the invocation whose result this is the second look at
	Parameters []byte   // JSON, as stored
	Affected   []string
	Diff       string // unified
	Digest     string
	Deadline   time.Time
}

// How much of one thing a card shows. What is longer is cut, and then the answer
// must not be remembered: nobody has seen all of it.
const (
	cardLines   = 200
	besideDiff  = 12 // lines of a text that the diff shows, too
	lineLength  = 2000
	labelLength = 13
)

// Whole reports whether the card shows everything.
func (c Card) Whole() bool {
	_, whole := c.lines(Style{}, time.Time{})
	return whole
}

// Render returns the card, with the time that is left at now.
func (c Card) Render(s Style, now time.Time) string {
	lines, whole := c.lines(s, now)
	if !whole {
		where := "bus show " + c.Session + " --json"
		if lineCount(c.Diff) > cardLines {
			where = "bus diff " + c.Session + "/" + c.Invocation
		}
		lines = append(lines, s.Yellow("  Not all of it fits: the rest is in `"+Visible(where)+"`."))
	}
	bar := s.Yellow("│ ")
	for i, l := range lines {
		lines[i] = bar + l
	}
	return strings.Join(lines, "\n") + "\n"
}

// lines returns the card without its bar, and whether everything is on it. What
// the caller of the tool chose stands further right than what the card says, so
// that neither passes for the other.
func (c Card) lines(s Style, now time.Time) ([]string, bool) {
	title := s.Bold(Line(c.Tool, 80)) + " " + s.tier(c.Tier) + " asks for approval"
	if c.ReviewOf != "" {
		title = s.Bold("Review of "+Line(c.ReviewOf, 80)+": ") + title
	}
	lines := []string{title}
	label := func(name, value string) {
		for _, l := range strings.Split(Visible(value), "\n") {
			lines = append(lines, s.Dim(fmt.Sprintf("%-*s ", labelLength, name))+l)
			name = ""
		}
	}
	label("invocation", c.Session+"/"+c.Invocation)
	label("why", c.Why)
	for _, n := range c.Notes {
		label("note", n)
	}
	for _, n := range c.Found {
		label("found", n)
	}
	params, whole := c.parameters(s)
	lines = append(lines, params...)
	for i, path := range c.Affected {
		label([]string{"changes", ""}[min(i, 1)], Word(path))
	}
	if c.Diff != "" {
		text, all := clipLines(c.Diff, cardLines)
		whole = whole && all
		for _, l := range strings.Split(s.Diff(strings.Join(text, "\n")), "\n") {
			lines = append(lines, "  "+l)
		}
	}
	label("digest", c.Digest)
	if !c.Deadline.IsZero() {
		label("until", c.Deadline.Local().Format("15:04:05")+" ("+left(c.Deadline, now)+")")
	}
	return lines, whole
}

// parameters shows each, and says whether all of it is shown, here or in the
// diff.
func (c Card) parameters(s Style) (lines []string, whole bool) {
	whole = true
	for _, f := range fields(c.Parameters) {
		most := cardLines
		inDiff := c.Diff != "" && (f.name == "content" || f.name == "replacement" || f.name == "patch")
		if inDiff {
			most = besideDiff
		}
		text, all := clipLines(f.value, most)
		whole = whole && (all || inDiff)
		name := Line(f.name, 40)
		for _, l := range text {
			lines = append(lines, s.Dim(fmt.Sprintf("  %-*s ", labelLength-2, name))+l)
			name = ""
		}
	}
	return lines, whole
}

func lineCount(text string) int { return strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1 }

func (s Style) tier(t string) string {
	switch t {
	case "T0", "T1":
		return s.Green(t)
	case "T2":
		return s.Yellow(t)
	}
	return s.Red(t)
}

// left says how much time there is until a deadline.
func left(deadline, now time.Time) string {
	d := deadline.Sub(now).Round(time.Second)
	if d <= 0 {
		return "over"
	}
	return d.String() + " left"
}

type cardField struct{ name, value string }

// fields takes parameters apart, in their own order. Texts are shown as they
// are, an argv as words, all else as JSON.
func fields(parameters []byte) []cardField {
	dec := json.NewDecoder(bytes.NewReader(parameters))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return []cardField{{"parameters", string(parameters)}}
	}
	var out []cardField
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return []cardField{{"parameters", string(parameters)}}
		}
		name, _ := key.(string)
		out = append(out, cardField{name, fieldText(name, value)})
	}
	return out
}

func fieldText(name string, value json.RawMessage) string {
	var argv []string
	if name == "argv" && json.Unmarshal(value, &argv) == nil {
		return Argv(argv)
	}
	var s string
	if json.Unmarshal(value, &s) == nil && value[0] == '"' {
		if s == "" {
			return `""`
		}
		return s
	}
	return string(value)
}

// clipLines returns the visible lines of a text, at most so many, and whether
// that is all of it.
func clipLines(text string, most int) ([]string, bool) {
	all := true
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > most {
		lines = append(lines[:most:most], fmt.Sprintf("… %d more lines", len(lines)-most))
		all = false
	}
	for i, l := range lines {
		l = Visible(l)
		if len(l) > lineLength {
			cut := strings.ToValidUTF8(l[:lineLength], "")
			l, all = cut+fmt.Sprintf("… %s more", Bytes(len(l)-lineLength)), false
		}
		lines[i] = l
	}
	return lines, all
}
