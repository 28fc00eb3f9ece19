package diff

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func side(text string) Side { return Side{Name: "f", Exists: true, Data: []byte(text)} }

func TestUnified(t *testing.T) {
	numbers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, i)
		}
		return b.String()
	}
	for _, c := range []struct {
		name     string
		old, new Side
		want     string
	}{
		{"nothing", side("a\n"), side("a\n"), ""},
		{"a line", side("a\nb\nc\n"), side("a\nx\nc\n"), "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
		{"new", Side{Name: "f"}, side("a\n"), "--- /dev/null\n+++ f\n@@ -0,0 +1 @@\n+a\n"},
		{"new and empty", Side{Name: "f"}, side(""), "--- /dev/null\n+++ f\n"},
		{"deleted", side("a\nb\n"), Side{Name: "f"}, "--- f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"no newline at the end", side("a"), side("a\n"), "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"CR LF", side("a\r\n"), side("a\n"), "--- f\n+++ f\n@@ -1 +1 @@\n-a\r\n+a\n"},
		{"two hunks", side(numbers(20)), side(strings.Replace(strings.Replace(numbers(20), "2\n", "x\n", 1), "\n17\n", "\ny\n", 1)),
			"--- f\n+++ f\n@@ -1,6 +1,6 @@\n 0\n 1\n-2\n+x\n 3\n 4\n 5\n@@ -15,6 +15,6 @@\n 14\n 15\n 16\n-17\n+y\n 18\n 19\n"},
		{"binary", side("a\x00"), side("b"), "--- f\n+++ f\nBinary files differ: 2 bytes before, 1 after\n"},
		{"a name with a newline", Side{Name: "a\nb", Exists: true, Data: []byte("1\n")}, Side{Name: "a\nb"}, "--- \"a\\nb\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Unified(c.old, c.new); got != c.want {
				t.Fatalf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	t.Run("too much", func(t *testing.T) {
		var a, z strings.Builder
		for i := range 5000 {
			fmt.Fprintln(&a, "a", i)
			fmt.Fprintln(&z, "z", i)
		}
		if got := Unified(side(a.String()), side(z.String())); got != "--- f\n+++ f\nToo much differs to show: 5000 lines before, 5000 after\n" {
			t.Fatalf("got %.200s", got)
		}
		// Common ends do not count.
		if got := Unified(side(a.String()), side(a.String()+"end\n")); !strings.HasSuffix(got, "+end\n") {
			t.Fatalf("got %.200s", got)
		}
	})
}

func FuzzUnified(f *testing.F) {
	for _, s := range [][2]string{{"", "a"}, {"a\nb\n", "a\nc\n"}, {"a\n\n\nb", "\n\nb\n"}, {"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n", "b\nc\nd\ne\nf\ng\nh\ni\nj\nk"}, {"@@\n-a\n+b\n", "--- a\n+++ b\n"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, old, new string) {
		text := Unified(side(old), side(new))
		if old == new {
			if text != "" {
				t.Fatalf("equal texts differ: %q", text)
			}
			return
		}
		if binary([]byte(old)) || binary([]byte(new)) {
			if !strings.Contains(text, "Binary files differ") {
				t.Fatalf("binary: %q", text)
			}
			return
		}
		if strings.Contains(text, "\nToo much differs") {
			return
		}
		if got, err := apply(old, text); err != nil || got != new {
			t.Fatalf("%q by\n%s\nis %q, %v; want %q", old, text, got, err, new)
		}
	})
}

// apply is a second reading of the format, independent of the writer.
func apply(old, patch string) (string, error) {
	in := strings.SplitAfter(old, "\n")
	body := strings.SplitAfter(patch, "\n")[2:] // without the names
	var out strings.Builder
	at := 0
	for i := 0; i < len(body); i++ {
		line := body[i]
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "@@ ") {
			var olds string
			if _, err := fmt.Sscanf(line, "@@ -%s", &olds); err != nil {
				return "", err
			}
			start, n, _ := strings.Cut(olds, ",")
			from, err := strconv.Atoi(start)
			if err != nil {
				return "", err
			}
			if n != "0" {
				from--
			}
			for ; at < from; at++ {
				out.WriteString(in[at])
			}
			continue
		}
		text := line[1:]
		if i+1 < len(body) && strings.HasPrefix(body[i+1], `\`) {
			text = strings.TrimSuffix(text, "\n")
		}
		switch line[0] {
		case ' ', '-':
			if at >= len(in) || in[at] != text {
				return "", fmt.Errorf("line %d is not %q", at+1, text)
			}
			at++
			if line[0] == ' ' {
				out.WriteString(text)
			}
		case '+':
			out.WriteString(text)
		}
	}
	for ; at < len(in); at++ {
		out.WriteString(in[at])
	}
	return out.String(), nil
}
