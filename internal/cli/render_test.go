package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden holds got against a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", path, got)
	}
}

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func TestCardGolden(t *testing.T) {
	old := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = old })
	edit := Card{
		Session: "s1", Invocation: "t1-0", Tool: "file_edit", Tier: "T3", Why: "tier T3 in mode prompt",
		Notes:      []string{"no preview came in time"},
		Parameters: []byte(`{"operation":"replace","path":"a/b.txt","target":"x","replacement":"evil\u202e\u001b[2J"}`),
		Affected:   []string{"a/b.txt", "a/c\u200b.txt"},
		Diff:       "--- a/b.txt\n+++ a/b.txt\n@@ -1 +1 @@\n-x\n+evil\u202e\x1b[2J\n",
		Digest:     "abc123", Deadline: noon.Add(90 * time.Second),
	}
	shell := Card{
		Session: "system", Invocation: "i5", Tool: "shell", Tier: "T2", Why: "policy: ask shell",
		Parameters: []byte(`{"argv":["git","commit","-m","two words"],"big":9007199254740993,"deep":{"a":null}}`),
		Digest:     "def456", Deadline: noon,
	}
	review := Card{
		Session: "s1", Invocation: "t1-0-c", Tool: "shell_commit", Tier: "T2", Why: "review of t1-0", ReviewOf: "t1-0",
		Notes: []string{"isolation fs-only"}, Found: []string{"directory /work", "python runs other programs\u202e"},
		Parameters: []byte(`{"set":"1"}`), Affected: []string{"/area/a.txt"}, Diff: "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two\n",
		Digest: "0123", Deadline: noon.Add(time.Minute),
	}
	golden(t, "card-review.txt", review.Render(Style{}, noon))
	golden(t, "card-edit.txt", edit.Render(Style{}, noon))
	golden(t, "card-edit-colour.txt", edit.Render(Coloured(true), noon))
	golden(t, "card-shell.txt", shell.Render(Style{}, noon))
}

func TestCardSaysWhenItIsNotWhole(t *testing.T) {
	long := `{"path":"a","content":"` + strings.Repeat(`line\n`, cardLines+1) + `"}`
	wide := `{"path":"a","content":"` + strings.Repeat("x", lineLength+1) + `"}`
	for _, c := range []struct {
		name  string
		card  Card
		whole bool
	}{
		{"short", Card{Parameters: []byte(`{"path":"a"}`)}, true},
		{"long", Card{Parameters: []byte(long)}, false},
		{"wide", Card{Parameters: []byte(wide)}, false},
		{"long, and the diff shows it", Card{Parameters: []byte(`{"content":"` + strings.Repeat(`line\n`, besideDiff+1) + `"}`), Diff: "+line\n"}, true},
		{"long diff", Card{Parameters: []byte(`{}`), Diff: strings.Repeat("+x\n", cardLines+1)}, false},
		{"no object", Card{Parameters: []byte(`[1,`)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.card.Whole(); got != c.whole {
				t.Errorf("whole is %v, want %v", got, c.whole)
			}
			if said := strings.Contains(c.card.Render(Style{}, noon), "Not all of it fits"); said == c.whole {
				t.Errorf("the card says so: %v", said)
			}
		})
	}
}

func TestTableGolden(t *testing.T) {
	var b bytes.Buffer
	Table(&b, Style{}, []string{"NAME", "WHAT"}, [][]string{
		{"é", "first"}, {"longer\x1b[31m", "two\nlines"}, {"x", strings.Repeat("y", 100)}, {"short row"},
	})
	golden(t, "table.txt", b.String())
}
