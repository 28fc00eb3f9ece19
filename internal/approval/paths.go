package approval

import (
	"slices"
	"strings"

	"correx/pkg/events"
)

// pathsMatch holds the files that a call names, by path or in the headers of a
// patch, against a rule's directory. A rule that allows needs all of them below it;
// one that asks or denies needs one.
func pathsMatch(r events.PolicyRule, path, patch *string) bool {
	var names []string
	if path != nil {
		names = append(names, *path)
	}
	if patch != nil {
		names = append(names, patched(*patch)...)
	}
	below := func(name string) bool { return under(name, r.PathPrefix) }
	if r.Effect == events.Allow {
		return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !below(name) })
	}
	return slices.ContainsFunc(names, below)
}

// patched are the names in a patch's headers, without the a/ and b/ of git where they
// are no directories. Lines of a hunk that look like headers count too: then a
// rule asks once too often, or allows once too seldom.
func patched(patch string) []string {
	lines := strings.Split(patch, "\n")
	var names []string
	for i := 0; i < len(lines); i++ {
		old, isOld := header(lines[i], "--- ")
		if isOld && i+1 < len(lines) {
			if new, ok := header(lines[i+1], "+++ "); ok {
				names = append(names, pair(old, new)...)
				i++
				continue
			}
		}
		if new, isNew := header(lines[i], "+++ "); isNew {
			names = append(names, new)
		} else if isOld {
			names = append(names, old)
		}
	}
	return names
}

func header(line, begins string) (string, bool) {
	name, ok := strings.CutPrefix(line, begins)
	name, _, _ = strings.Cut(name, "\t")
	return strings.TrimSpace(name), ok
}

// pair is what two header lines name.
func pair(old, new string) []string {
	oldBare, isA := strings.CutPrefix(old, "a/")
	newBare, isB := strings.CutPrefix(new, "b/")
	const none = "/dev/null"
	switch {
	case old == none:
		return []string{newBare}
	case new == none:
		return []string{oldBare}
	case isA && isB && oldBare == newBare:
		return []string{oldBare}
	}
	return []string{old, new}
}
