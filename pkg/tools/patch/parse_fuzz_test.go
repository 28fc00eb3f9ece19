package patch_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"correx/pkg/tools/patch"
)

// lay makes the file that a patch is for: its old lines where it says, and others
// between.
func lay(f patch.File) (string, bool) {
	var b strings.Builder
	line := 1
	for _, h := range f.Hunks {
		if h.At > 2000 {
			return "", false
		}
		for ; line < h.At; line++ {
			fmt.Fprintf(&b, "filler %d\n", line)
		}
		for _, l := range h.Lines {
			if l.Kind != '+' {
				b.WriteString(l.Text)
				line++
			}
		}
	}
	return b.String(), true
}

// FuzzParse: what is taken can be applied to the file that it is for, and what
// Render writes of it is taken too, and makes the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n",
		"--- a/f\n+++ b/f\n@@ -3 +3 @@\n-y\n\\ No newline at end of file\n+z\n",
		"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+z\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n",
		"diff --git a/f b/f\nnew file mode 100644\nindex 0000000..1234567\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+z\n",
		"--- a\r\n+++ a\r\n@@ -1 +1,2 @@\r\n x\r\n+y\r\n",
		"*** a\n--- a\n", "1,2c\n.\n", "Index: a\n", "--- \"a\"\n+++ \"a\"\n", "@@ -1 +1 @@\n", "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+x\n\n\n--- b\n",
		"--- a\n+++ a\n@@ -1,3 +1,3 @@\n\n-y\n+z\n\n@@ -9 +9 @@\n-1\n+2\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := patch.Parse(text)
		if err != nil {
			if strings.TrimSpace(err.Error()) == "" {
				t.Fatal("it does not say why")
			}
			return
		}
		for _, file := range p.Files {
			old, ok := lay(file)
			if !ok {
				continue
			}
			r, err := file.Apply([]byte(old), !file.Create)
			if err != nil {
				continue // what it makes is what was there, or it ends in the middle
			}
			again, err := patch.Parse(string(file.Render(r, "f0")))
			if err != nil {
				t.Fatalf("rendered as %q: %v", file.Render(r, "f0"), err)
			}
			r2, err := again.Files[0].Apply([]byte(old), !file.Create)
			if err != nil || !bytes.Equal(r2.Data, r.Data) || r2.Exists != r.Exists {
				t.Fatalf("%q makes %q of %q, and rendered as %q %q, %v", text, r.Data, old, file.Render(r, "f0"), r2.Data, err)
			}
		}
	})
}
