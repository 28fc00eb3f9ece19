package cli

import "strings"

// A Style colours text, or leaves it as it is.
type Style struct{ on bool }

// Coloured returns a style that colours, or not.
func Coloured(on bool) Style { return Style{on} }

func (s Style) wrap(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s Style) Bold(t string) string   { return s.wrap("1", t) }
func (s Style) Dim(t string) string    { return s.wrap("2", t) }
func (s Style) Red(t string) string    { return s.wrap("31", t) }
func (s Style) Green(t string) string  { return s.wrap("32", t) }
func (s Style) Yellow(t string) string { return s.wrap("33", t) }
func (s Style) Blue(t string) string   { return s.wrap("34", t) }
func (s Style) Cyan(t string) string   { return s.wrap("36", t) }

// Diff colours a unified diff, whose text it makes visible.
func (s Style) Diff(diff string) string {
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	for i, l := range lines {
		l = Visible(l)
		switch {
		case strings.HasPrefix(l, "+++ "), strings.HasPrefix(l, "--- "):
			l = s.Bold(l)
		case strings.HasPrefix(l, "@@"):
			l = s.Cyan(l)
		case strings.HasPrefix(l, "+"):
			l = s.Green(l)
		case strings.HasPrefix(l, "-"):
			l = s.Red(l)
		}
		lines[i] = l
	}
	return strings.Join(lines, "\n")
}
