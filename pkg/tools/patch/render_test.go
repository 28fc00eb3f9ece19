package patch_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/testenv"
	"correx/pkg/tools/diff"
	"correx/pkg/tools/patch"
)

// script is a random edit of a file: what it was, what it is to be, and the diff,
// with hunks of a context drawn at random.
func script(r *rand.Rand) (old, new string) {
	words := []string{"a", "b", "c", "", "  x", "-- y", "++ z", "@@ -1 +1 @@", "\\ no", "end\r", "é", "--- f", "+++ f"}
	end := "\n"
	if r.IntN(4) == 0 {
		end = "\r\n"
	}
	line := func() string { return words[r.IntN(len(words))] + fmt.Sprint(r.IntN(4)) + end }
	var before, after []string
	for range r.IntN(40) {
		before = append(before, line())
	}
	for _, l := range before {
		switch r.IntN(12) {
		case 0:
			after = append(after, line(), l)
		case 1:
			after = append(after, line())
		case 2:
		default:
			after = append(after, l)
		}
	}
	if r.IntN(3) == 0 {
		after = append(after, line())
	}
	old, new = strings.Join(before, ""), strings.Join(after, "")
	if r.IntN(3) == 0 {
		old = strings.TrimSuffix(old, end)
	}
	if r.IntN(3) == 0 {
		new = strings.TrimSuffix(new, end)
	}
	return old, new
}

// TestPatchAgreesWithTheProgram: what Apply makes of a random edit is the edit,
// and the program patch makes the same of what Render writes.
func TestPatchAgreesWithTheProgram(t *testing.T) {
	program, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("there is no program patch here")
	}
	r := rand.New(rand.NewPCG(testenv.Seed(t), 11))
	dir := t.TempDir()
	for n := range 300 {
		old, new := script(r)
		if old == new {
			continue
		}
		text := diff.Unified(diff.Side{Name: "f", Exists: true, Data: []byte(old)}, diff.Side{Name: "f", Exists: true, Data: []byte(new)})
		p, err := patch.Parse(text)
		if err != nil {
			t.Fatalf("%d: %v\n%s", n, err, text)
		}
		got, err := p.Files[0].Apply([]byte(old), true)
		if err != nil {
			if old == "" || strings.Contains(err.Error(), "only lines with +") {
				continue
			}
			t.Fatalf("%d: %v\n%q\n%s", n, err, old, text)
		}
		if string(got.Data) != new {
			t.Fatalf("%d: got %q\nwant %q\n%s", n, got.Data, new, text)
		}
		rendered := p.Files[0].Render(got, "f")
		file, in := filepath.Join(dir, "f"), filepath.Join(dir, "in")
		if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(in, rendered, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "-p0", "--binary", "--forward", "--batch", "--fuzz=0", "--no-backup-if-mismatch", "-r", "-", "-i", in)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%d: %v: %s\n%q\n%s", n, err, out, old, rendered)
		}
		if made, err := os.ReadFile(file); err != nil || string(made) != new {
			t.Fatalf("%d: the program made %q\nwant %q, %v\n%s", n, made, new, err, rendered)
		}
	}
}
