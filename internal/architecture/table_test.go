package architecture_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/testenv"
)

const module = "correx"

// thirdParty is what the table's short names stand for.
var thirdParty = map[string]string{
	"nats": "github.com/nats-io/nats.go", "nats-server": "github.com/nats-io/nats-server/v2", "nkeys": "github.com/nats-io/nkeys",
	"watermill": "github.com/ThreeDotsLabs/watermill", "sqlite": "github.com/mattn/go-sqlite3",
	"cobra": "github.com/spf13/cobra", "yaml": "go.yaml.in/yaml/v3", "jsonschema": "github.com/google/jsonschema-go",
	"landlock": "github.com/landlock-lsm/go-landlock", "seccomp": "github.com/elastic/go-seccomp-bpf", "net": "golang.org/x/net",
	"mcp":  "github.com/modelcontextprotocol/go-sdk",
	"sync": "golang.org/x/sync", "sys": "golang.org/x/sys", "term": "golang.org/x/term",
}

// A row is one line of the table.
type row struct {
	pattern string // below the module; "cmd/*" is each package of cmd
	purpose string
	may     []string // as it is written
}

// table reads section 9 of the design.
func table(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## 9. Packages\n")
	if !ok {
		t.Fatal("docs/design.md has no section 9. Packages")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []row
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 {
			t.Fatalf("docs/design.md: a line of the table has %d cells, not 3: %s", len(cells), line)
		}
		r := row{pattern: bare(cells[0]), purpose: strings.TrimSpace(cells[1])}
		for _, name := range strings.Split(cells[2], ",") {
			if name = bare(name); name != "–" {
				r.may = append(r.may, name)
			}
		}
		rows = append(rows, r)
	}
	if len(rows) < 20 {
		t.Fatalf("docs/design.md: the table of section 9 has %d lines; has its form changed?", len(rows))
	}
	return rows
}

func bare(cell string) string { return strings.Trim(strings.TrimSpace(cell), "`") }

func (r row) matches(pkg string) bool {
	if dir, ok := strings.CutSuffix(r.pattern, "/*"); ok {
		return strings.HasPrefix(pkg, dir+"/")
	}
	return pkg == r.pattern
}

// find returns the line of a package.
func find(rows []row, pkg string) (int, bool) {
	for n, r := range rows {
		if r.matches(pkg) {
			return n, true
		}
	}
	return 0, false
}

// called returns the line above n that a short name of its third column means.
func called(rows []row, n int, name string) (int, error) {
	found := -1
	for k, r := range rows[:n] {
		if r.pattern != name && !strings.HasSuffix(r.pattern, "/"+name) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("%s could be %s or %s", name, rows[found].pattern, r.pattern)
		}
		found = k
	}
	if found < 0 {
		return 0, fmt.Errorf("%s is no package above it, nor one of %s", name, names(thirdParty))
	}
	return found, nil
}
