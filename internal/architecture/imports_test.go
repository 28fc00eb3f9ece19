package architecture_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"correx/internal/testenv"
)

// A unit is one package as the go command lists it, without its tests.
type unit struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

// name is the path below the module; "." is its root.
func (u unit) name() string { return below(u.ImportPath) }

func below(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func own(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !own(path) && !strings.Contains(first, ".")
}

func units(t *testing.T) []unit {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", "sqlite_fts5", "-json=ImportPath,Dir,GoFiles,Imports", "./...")
	cmd.Dir = testenv.Root()
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		t.Fatalf("list packages: %v", err)
	}
	var all []unit
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var u unit
		if err := dec.Decode(&u); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
}

// TestImportsAreThoseOfTheTable: a package imports what its line in the design
// allows, which stands above it.
func TestImportsAreThoseOfTheTable(t *testing.T) {
	rows := table(t)
	used := make([]bool, len(rows))
	for _, u := range units(t) {
		n, ok := find(rows, u.name())
		if !ok {
			t.Errorf("%s is not in the table of docs/design.md, section 9: say there what it is for and what it may import", u.name())
			continue
		}
		used[n] = true
		for _, path := range u.Imports {
			if standard(path) {
				continue
			}
			if err := allowed(rows, n, path); err != nil {
				t.Errorf("%s imports %s: %v", u.name(), path, err)
			}
		}
	}
	for n, r := range rows {
		if !used[n] {
			t.Errorf("docs/design.md, section 9: there is no package %s", r.pattern)
		}
		for _, name := range r.may {
			if _, known := thirdParty[name]; known || name == "all above" {
				continue
			}
			if _, err := called(rows, n, name); err != nil {
				t.Errorf("docs/design.md, section 9, may import of %s: %v", r.pattern, err)
			}
		}
	}
}

// allowed says why the package of line n may not import path.
func allowed(rows []row, n int, path string) error {
	r := rows[n]
	if !own(path) {
		for name, prefix := range thirdParty {
			if within(path, prefix) && slices.Contains(r.may, name) {
				return nil
			}
		}
		return fmt.Errorf("it is for %q, which takes of other people's packages nothing but %s", r.purpose, list(r.may))
	}
	k, ok := find(rows, below(path))
	if !ok {
		return errors.New("that is not in the table of docs/design.md, section 9")
	}
	if k >= n {
		return fmt.Errorf("that stands below it in docs/design.md, section 9, and arrows point up only: %q must work without %q", r.purpose, rows[k].purpose)
	}
	if slices.Contains(r.may, "all above") {
		return nil
	}
	for _, name := range r.may {
		if c, err := called(rows, n, name); err == nil && c == k {
			return nil
		}
	}
	return fmt.Errorf("it is for %q, which needs nothing but %s (docs/design.md, section 9)", r.purpose, list(r.may))
}

func within(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

func list(may []string) string {
	if len(may) == 0 {
		return "the standard library"
	}
	return strings.Join(may, ", ")
}

func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// laws hold whatever the table says.
var laws = []struct {
	from   string
	forbid func(path string) bool
	reason string
}{
	{"pkg/", func(p string) bool { return within(p, module+"/internal") },
		"whoever writes a tool, worker or client of their own could not import it"},
	{"pkg/events", func(p string) bool { return !standard(p) },
		"the vocabulary must cost nothing to whoever speaks it"},
	{"internal/session", impure, "the rules are pure: a log must give the same decisions wherever it is folded"},
	{"internal/approval", impure, "the rules are pure: a log must give the same decisions wherever it is folded"},
	{"internal/access", func(p string) bool { return within(p, thirdParty["nats-server"]) },
		"workers connect by it, and are no servers"},
}

func impure(path string) bool {
	return slices.Contains([]string{"os", "net", "net/http", "log", "log/slog", "sync", "context", "math/rand", "math/rand/v2",
		"crypto/rand", thirdParty["nats"]}, path)
}

func TestLaws(t *testing.T) {
	held := map[string]bool{}
	for _, u := range units(t) {
		for _, law := range laws {
			if u.name() != law.from && !(strings.HasSuffix(law.from, "/") && strings.HasPrefix(u.name(), law.from)) {
				continue
			}
			held[law.from] = true
			for _, path := range u.Imports {
				if law.forbid(path) {
					t.Errorf("%s imports %s: %s", u.name(), path, law.reason)
				}
			}
		}
	}
	for _, law := range laws {
		if !held[law.from] {
			t.Errorf("there is no package %s any more, of which a law speaks", law.from)
		}
	}
}

// TestPureCodeHasNoClock: now is an argument in what must be pure.
func TestPureCodeHasNoClock(t *testing.T) {
	for _, u := range units(t) {
		if n := u.name(); n != "internal/session" && n != "internal/approval" && n != "pkg/events" {
			continue
		}
		for _, name := range u.GoFiles {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(u.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "After", "Sleep", "NewTimer", "NewTicker", "AfterFunc"}, s.Sel.Name) {
					t.Errorf("%s: time.%s: now is an argument here, so that a decision can be checked again", fset.Position(s.Pos()), s.Sel.Name)
				}
				return true
			})
		}
	}
}
