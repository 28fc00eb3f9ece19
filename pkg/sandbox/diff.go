package sandbox

import "correx/pkg/tools/diff"

// Diff is the unified diff from old to new, by the longest common subsequence of
// lines; nil means that there is no such file. It is empty when nothing differs.
// Binary files and changes too large to compare get a line that says so.
func Diff(path string, old, new []byte) string {
	return diff.Unified(
		diff.Side{Name: path, Exists: old != nil, Data: old},
		diff.Side{Name: path, Exists: new != nil, Data: new},
	)
}
