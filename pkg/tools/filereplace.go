package tools

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"correx/pkg/tools/patch"
)

// likeFile gives text the line ends of a file that has CR LF throughout.
func likeFile(data []byte, text string) string {
	if patch.AllCRLF(data) && !strings.Contains(text, "\r") {
		return strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// replaceOnce replaces target, which must occur exactly once; occurrences that
// overlap count. It returns the line at which it did.
func replaceOnce(data []byte, target, replacement string) (line int, after []byte, err error) {
	switch {
	case target == "":
		return 0, nil, errors.New("target is empty; give the text that is to be replaced")
	case target == replacement:
		return 0, nil, errors.New("target and replacement are equal; nothing would change")
	}
	at := occurrences(data, target)
	if len(at) == 0 {
		if t := likeFile(data, target); t != target {
			target, replacement = t, likeFile(data, replacement)
			at = occurrences(data, target)
		}
	}
	switch len(at) {
	case 0:
		return 0, nil, notFound(data, target)
	case 1:
		after = append(after, data[:at[0]]...)
		after = append(after, replacement...)
		return lineOf(data, at[0]), append(after, data[at[0]+len(target):]...), nil
	}
	return 0, nil, fmt.Errorf("target occurs %d times, at lines %s; give more of the text around the one that is meant, so that it occurs once", len(at), linesOf(data, at))
}

// occurrences returns where target begins, overlapping ones too.
func occurrences(data []byte, target string) []int {
	var at []int
	for from := 0; ; {
		i := bytes.Index(data[from:], []byte(target))
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + 1
	}
}

func lineOf(data []byte, at int) int { return 1 + bytes.Count(data[:at], []byte("\n")) }

// linesOf names the lines of the first twenty places.
func linesOf(data []byte, at []int) string {
	var names []string
	for _, a := range at[:min(len(at), 20)] {
		names = append(names, fmt.Sprint(lineOf(data, a)))
	}
	if len(at) > 20 {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// notFound says what comes near the target: the same but for line ends, or lines
// that differ from its first one in white space or case only.
func notFound(data []byte, target string) error {
	if at := strings.Index(withoutCR(string(data)), withoutCR(target)); at >= 0 {
		return fmt.Errorf("target does not occur exactly so, but with other line ends, at line %d; those of the file are %s; take a target within one line, or write its line ends as they are",
			lineOf([]byte(withoutCR(string(data))), at), lineEnds(string(data)))
	}
	lines := strings.Split(string(data), "\n")
	first := fold(strings.Split(strings.TrimSpace(target), "\n")[0])
	var near []string
	for i, l := range lines {
		if first != "" && strings.Contains(fold(l), first) && len(near) < 3 {
			near = append(near, fmt.Sprintf("line %d: %.200q", i+1, strings.TrimSuffix(l, "\r")))
		}
	}
	if len(near) == 0 {
		return fmt.Errorf("target does not occur in its %d lines; read the file and copy the text exactly", len(lines))
	}
	return fmt.Errorf("target does not occur exactly so; nearest, apart from white space, case or the lines after: %s; copy the text exactly", strings.Join(near, "; "))
}

func withoutCR(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
