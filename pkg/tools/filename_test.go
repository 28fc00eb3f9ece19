package tools

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzNames: each name is shown as text of which it can be read again, and no
// other text is read as that name.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"a", "\xff", `\xff`, `\x5cx41`, "\\\xff", `\x4` + "\xff", "é", "\xc3\xa9", "\n", `\\x0a`, "a/b", "�"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		shown := showName(s)
		if !utf8.ValidString(shown) {
			t.Fatalf("%q is shown as %q", s, shown)
		}
		if back, err := readName(shown); err != nil || back != s {
			t.Fatalf("%q is shown as %q, which is read as %q, %v", s, shown, back, err)
		}
		if name, err := readName(s); err == nil && !strings.ContainsRune(name, 0) && showName(name) != s {
			t.Fatalf("%q is read as %q, which is shown as %q", s, name, showName(name))
		}
	})
}
