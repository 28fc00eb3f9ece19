package session_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the logs of testdata/*.txtar anew")

// goldens calls f with every script of testdata.
func goldens(t *testing.T, f func(t *testing.T, path string, a *txtar.Archive)) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("scripts: %v %v", paths, err)
	}
	for _, p := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(p), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(p)
			if err != nil {
				t.Fatal(err)
			}
			f(t, p, a)
		})
	}
}

func section(t *testing.T, a *txtar.Archive, name string) *txtar.File {
	t.Helper()
	for k := range a.Files {
		if a.Files[k].Name == name {
			return &a.Files[k]
		}
	}
	a.Files = append(a.Files, txtar.File{Name: name})
	return &a.Files[len(a.Files)-1]
}

func inputs(t *testing.T, a *txtar.Archive) []string {
	t.Helper()
	var lines []string
	for _, l := range strings.Split(string(section(t, a, "script").Data), "\n") {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		t.Fatal("script has no input")
	}
	return lines
}

// play runs a script; with amnesia the kernel is restarted before all it does.
func play(t *testing.T, a *txtar.Archive, amnesia bool) *sim {
	t.Helper()
	s := newSim(t)
	s.amnesia = amnesia
	for _, l := range inputs(t, a) {
		s.out.WriteString("\n> " + l + "\n")
		s.input(l)
	}
	for _, k := range s.order {
		for _, a := range s.states[k].Alarms {
			s.out.WriteString("\n! alarm #" + itoa(a.Seq) + " " + a.Subject + ": " + a.Reason)
		}
		if st := s.states[k].Status; st != "" {
			s.out.WriteString("\n= " + string(k.Session) + " " + string(st))
		}
	}
	s.out.WriteString("\n")
	return s
}

// The logs are the specification: what a kernel must answer to what comes from
// outside. Whoever writes them anew reads them.
func TestGoldenLogs(t *testing.T) {
	goldens(t, func(t *testing.T, path string, a *txtar.Archive) {
		got := strings.TrimLeft(play(t, a, false).out.String(), "\n")
		want := section(t, a, "log")
		if *update {
			want.Data = []byte(got)
			if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if got != string(want.Data) {
			t.Errorf("log differs; got\n%s", diff(string(want.Data), got))
		}
	})
}

// diff shows the first lines that differ.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for k := 0; k < len(w) || k < len(g); k++ {
		if k >= len(w) || k >= len(g) || w[k] != g[k] {
			return "line " + itoa(uint64(k+1)) + "\n- " + strings.Join(w[min(k, len(w)):min(k+4, len(w))], "\n- ") +
				"\n+ " + strings.Join(g[min(k, len(g)):min(k+4, len(g))], "\n+ ")
		}
	}
	return ""
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
