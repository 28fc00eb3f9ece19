package patch

import (
	"fmt"
	"slices"
	"strings"
)

// A MismatchError says why a patch does not fit a file.
type MismatchError struct {
	Hunk   int // line of the patch at which the hunk, or the file, begins
	Reason string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("at line %d of the patch: %s", e.Hunk, e.Reason)
}

func (h Hunk) mismatch(format string, a ...any) error {
	return &MismatchError{Hunk: h.Line, Reason: "the hunk does not fit: " + fmt.Sprintf(format, a...)}
}

// maxSearch bounds the search for the place where most lines fit: lines of the
// file times lines of the hunk. It is some 30 ms.
const maxSearch = 4 << 20

// nowhere says what stands where a hunk comes nearest.
func (h Hunk) nowhere(lines []string, from int) error {
	want := h.side('-')
	if at, ok := h.applied(lines); ok {
		return h.mismatch("what it makes stands at line %d already; it seems to be applied", at+1)
	}
	if len(lines) == 0 {
		return h.mismatch("the file is empty")
	}
	at, same := h.nearest(lines, want, from)
	i := 0
	for i < len(want) && at+i < len(lines) && lines[at+i] == want[i] {
		i++
	}
	switch {
	case i == len(want):
		return h.mismatch("it fits at line %d, and the hunk above it ends below that; hunks stand in the order of the file", at+1)
	case at+i >= len(lines):
		return h.mismatch("the file ends with line %d, and %q was to follow", len(lines), short(want[i]))
	}
	where := fmt.Sprintf("line %d of the file is %q, and the hunk has %q", at+i+1, short(lines[at+i]), short(want[i]))
	if why := difference(lines[at+i], want[i]); why != "" {
		where += " (" + why + ")"
	}
	if at != h.before() {
		where = fmt.Sprintf("nearest it comes at line %d, where %d of its %d old lines fit; but %s", at+1, same, len(want), where)
	}
	return h.mismatch("%s; read the file and copy its lines exactly", where)
}

// applied looks for what the hunk would make: where its header says, or
// anywhere if it is more than a line or two, which may stand there by chance.
func (h Hunk) applied(lines []string) (int, bool) {
	new := h.side('+')
	adds := slices.ContainsFunc(h.Lines, func(l Line) bool { return l.Kind == '+' })
	if at := h.before(); adds && fits(lines, at, new) {
		return at, true
	}
	for i := 0; len(new) > 2 && i+len(new) <= len(lines); i++ {
		if fits(lines, i, new) {
			return i, true
		}
	}
	return 0, false
}

// nearest is where most of the lines fit, but for white space and case; the
// place that the header says if none does.
func (h Hunk) nearest(lines, want []string, from int) (at, same int) {
	at = min(max(h.before(), 0), len(lines)-1)
	if len(lines)*len(want) > maxSearch {
		return at, 0
	}
	lines, want = folded(lines), folded(want)
	same = alike(lines, at, want)
	for i := from; i < len(lines); i++ {
		if n := alike(lines, i, want); n > same {
			at, same = i, n
		}
	}
	return at, same
}

func alike(lines []string, at int, want []string) int {
	n := 0
	for i, w := range want {
		if at+i < len(lines) && lines[at+i] == w {
			n++
		}
	}
	return n
}

func folded(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = fold(l)
	}
	return out
}

func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// difference names what two lines differ in, where it cannot be seen.
func difference(have, want string) string {
	switch {
	case have == want+"\n" || have == want+"\r\n":
		return `the file goes on with a newline there; leave out "\ No newline at end of file"`
	case have+"\n" == want || have+"\r\n" == want:
		return `no newline ends it; put a line "\ No newline at end of file" below it`
	case strings.TrimRight(have, "\r\n") == strings.TrimRight(want, "\r\n"):
		return "they differ in their line ends, CR LF and LF"
	case strings.TrimRight(have, " \t\r\n") == strings.TrimRight(want, " \t\r\n"):
		return "they differ in blanks at the end"
	case strings.TrimLeft(have, " \t") == strings.TrimLeft(want, " \t"):
		return "they differ in how far they are indented"
	case fold(have) == fold(want):
		return "they differ in blanks or case"
	}
	return ""
}

func short(line string) string {
	const most = 120
	runes := []rune(line)
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
}

// listed names the first ten of some lines.
func listed(at []int) string {
	var names []string
	for _, a := range at[:min(len(at), 10)] {
		names = append(names, fmt.Sprint(a+1))
	}
	if len(at) > 10 {
		names = append(names, fmt.Sprintf("and %d more", len(at)-10))
	}
	return strings.Join(names, ", ")
}
