package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text stays", "héllo\n\tworld ✓", "héllo\n\tworld ✓"},
		{"escape sequences", "\x1b[2Jgone\x07", `\x1b[2Jgone\x07`},
		{"carriage return", "safe\revil", `safe\revil`},
		{"C1 controls", "a\u009bm", `a\u{9b}m`},
		{"direction", "a\u202eb\u2066c", `a\u{202e}b\u{2066}c`},
		{"no width", "rm\u200b -rf\ufeff", `rm\u{200b} -rf\u{feff}`},
		{"tags", "x\U000e0041", `x\u{e0041}`},
		{"fillers that count as letters", "a\u3164b\u115f", `a\u{3164}b\u{115f}`},
		{"spaces that are none", "a\u00a0b\u3000c", `a\u{a0}b\u{3000}c`},
		{"variation selectors", "a\ufe0f\U000e0100", `a\u{fe0f}\u{e0100}`},
		{"bytes that are no UTF-8", "a\xff\xc3b", `a\xff\xc3b`},
		{"line and paragraph separators", "a\u2028b\u2029", `a\u{2028}b\u{2029}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Visible(c.in); got != c.want {
				t.Errorf("%q shows as %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff\n")
	f.Fuzz(func(t *testing.T, s string) {
		got := Visible(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\r\x00\x7f\u200b\u202e\u009b") {
			t.Errorf("%q shows as %q", s, got)
		}
		if Visible(got) != got {
			t.Errorf("%q changes again", got)
		}
		if l := Line(s, 20); strings.Contains(l, "\n") || utf8.RuneCountInString(l) > 20 {
			t.Errorf("the line of %q is %q", s, l)
		}
	})
}

func TestArgvTellsWordsApart(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"ls", "-l", "/tmp/a.txt"}, "ls -l /tmp/a.txt"},
		{[]string{"rm", "a b"}, `rm "a b"`},
		{[]string{"rm", "a", "b"}, "rm a b"},
		{[]string{"sh", "-c", "x;\ny"}, `sh -c "x;\ny"`},
		{[]string{"", "\x1b"}, `"" "\x1b"`},
		{[]string{"é\u200b"}, `"é\u200b"`},
		{[]string{"\\x1b"}, `"\\x1b"`},
	} {
		if got := Argv(c.argv); got != c.want {
			t.Errorf("%q shows as %s, want %s", c.argv, got, c.want)
		}
	}
}
