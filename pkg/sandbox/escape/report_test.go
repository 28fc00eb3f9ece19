package escape

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"correx/internal/testenv"
)

const (
	section = "## What was tried"
	begin   = "<!-- written by pkg/sandbox/escape: go test -run TestEscape -update -->"
	end     = "<!-- the end of what is written -->"
)

func page() string { return filepath.Join(testenv.Root(), "docs", "sandbox.md") }

// seen has the rows of this run, by the attempt's name.
var seen = map[string][]string{}

// report holds a row against the documentation, or keeps it to be written.
func report(t *testing.T, a attempt, vs verdicts) {
	t.Helper()
	row := vs.cells()
	seen[a.name] = row
	if *update {
		return
	}
	written, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	want, ok := written[a.name]
	if !ok {
		t.Fatalf("docs/sandbox.md does not say what came of %q; run: go test ./pkg/sandbox/escape -run TestEscape -update", a.name)
	}
	if row[0] != want[0] {
		t.Logf("tried here as %q, for docs/sandbox.md as %q: this machine differs, and nothing is compared", row[0], want[0])
		return
	}
	for i, got := range row {
		lost := a.times > 1 && strings.HasPrefix(want[i], string(escapes)) // a race can be lost
		if got != "" && want[i] != "" && got != want[i] && a.open == "" && !lost {
			t.Errorf("docs/sandbox.md says %q for %q in column %d, and it is %q; look why, then run with -update", want[i], a.name, i, got)
		}
	}
}

// TestEscapeTableIsComplete holds the names in the documentation against the
// attempts that there are.
func TestEscapeTableIsComplete(t *testing.T) {
	if *update {
		t.Skip("it is about to be written")
	}
	written, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, a := range attempts() {
		if names[a.name] {
			t.Errorf("two attempts are called %q", a.name)
		}
		names[a.name] = true
		if _, ok := written[a.name]; !ok {
			t.Errorf("docs/sandbox.md has no %q", a.name)
		}
	}
	for name := range written {
		if !names[name] {
			t.Errorf("docs/sandbox.md has %q, which is not tried", name)
		}
	}
}

// readTable reads the rows that are written, by the attempt's name.
func readTable() (map[string][]string, error) {
	_, text, _, err := split()
	if err != nil {
		return nil, err
	}
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2+len(levels) || strings.Contains(line, "---") || strings.HasPrefix(line, "| attempt") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows[cells[0]] = cells[1:]
	}
	return rows, nil
}

// split divides the page into what is before, in and after the table.
func split() (before, table, after string, err error) {
	b, err := os.ReadFile(page())
	if err != nil {
		return "", "", "", err
	}
	before, rest, ok := strings.Cut(string(b), begin+"\n")
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 || !strings.Contains(before, section) {
		return "", "", "", errors.New("docs/sandbox.md has no section " + section + " with the marks of the table")
	}
	return before, table, after, nil
}

// finish writes the table, if that is wanted. What was not tried in this run
// keeps its row, and so does what proves nothing on this machine.
func finish() error {
	if !*update || len(seen) == 0 {
		return nil
	}
	before, _, after, err := split()
	if err != nil {
		return err
	}
	old, err := readTable()
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d attempts.\n", len(attempts()))
	for _, g := range groups() {
		fmt.Fprintf(&b, "\n### %s\n\n| attempt | as | no sandbox | none | fs-only | full |\n|---|---|---|---|---|---|\n", g.name)
		for _, a := range g.attempts {
			fmt.Fprintf(&b, "| %s | %s |\n", a.name, strings.Join(merged(seen[a.name], old[a.name]), " | "))
		}
		fmt.Fprint(&b, remarks(g))
	}
	return os.WriteFile(page(), []byte(before+begin+"\n"+b.String()+end+after), 0o644)
}

// merged is a row of this run, with what an older one knew besides.
func merged(now, old []string) []string {
	known := len(old) == 1+len(levels)
	switch {
	case !known && now == nil:
		return slices.Repeat([]string{""}, 1+len(levels))
	case !known:
		return now
	case now == nil, now[0] == "–" && old[0] != "":
		return old
	}
	row := slices.Clone(now)
	for i := range row {
		if row[i] == "" && row[0] == old[0] {
			row[i] = old[i]
		}
	}
	return row
}

// remarks says of what is not held why.
func remarks(g group) string {
	var b strings.Builder
	for _, a := range g.attempts {
		if a.open != "" {
			fmt.Fprintf(&b, "\n*%s*: %s\n", a.name, a.open)
		}
	}
	return b.String()
}
