package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"correx/internal/testenv"
)

// TestDocumentedCommandsExist holds every subcommand and flag that the documents
// name against the help of the programs.
func TestDocumentedCommandsExist(t *testing.T) {
	help := helpOf(t, testenv.Bin(t))
	found := 0
	for _, name := range documents(t) {
		for _, line := range codeOf(document(t, name)) {
			found += checkCommands(t, help, name, line)
		}
	}
	if found < 20 {
		t.Errorf("only %d commands were found in the documents", found)
	}
}

// documents returns the names of all pages, relative to the root.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		found, err := filepath.Glob(filepath.Join(testenv.Root(), pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no pages %s: %v", pattern, err)
		}
		for _, path := range found {
			name, err := filepath.Rel(testenv.Root(), path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, name)
		}
	}
	return all
}

var link = regexp.MustCompile(`\]\(([^)#]+)\)`)

// TestDocumentsLinkToFiles follows the links between the pages.
func TestDocumentsLinkToFiles(t *testing.T) {
	followed := 0
	for _, name := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(document(t, name), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			followed++
			if _, err := os.Stat(filepath.Join(testenv.Root(), filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			}
		}
	}
	if followed < 20 {
		t.Errorf("only %d links were found", followed)
	}
}

// later is what the design names and nobody has built yet.
var later = map[string]bool{"bus audit verify": true, "bus replay --verify": true}

var (
	span    = regexp.MustCompile("`([^`\n]+(?:\n[^`\n]+)?)`")
	command = regexp.MustCompile(`(?:^|[\s(|"])(bus|projector|tool-worker|model-worker)((?: +[^\s|&;)"]+)*)`)
	word    = regexp.MustCompile(`^[a-z]`)
	flag    = regexp.MustCompile(`^--?[a-z][a-z-]*`)
)

// codeOf returns what stands in code, line by line: fenced blocks and spans.
func codeOf(text string) []string {
	var code []string
	fenced, plain := false, ""
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced:
			code = append(code, strings.TrimSpace(line))
		default:
			plain += line
		}
	}
	for _, m := range span.FindAllStringSubmatch(plain, -1) {
		code = append(code, strings.ReplaceAll(m[1], "\n", " "))
	}
	return code
}

// checkCommands checks the commands in one line of code; it returns how many
// there are.
func checkCommands(t *testing.T, help map[string]string, where, line string) int {
	n := 0
	if later[line] {
		return 0
	}
	for _, m := range command.FindAllStringSubmatch(line, -1) {
		program, words := m[1], strings.Fields(m[2])
		if len(words) == 0 {
			continue
		}
		path := program
		for len(words) > 0 && help[path+" "+words[0]] != "" {
			path, words = path+" "+words[0], words[1:]
		}
		if path == program && !strings.HasPrefix(words[0], "-") {
			if program == "bus" && word.MatchString(words[0]) {
				t.Errorf("%s: %q: %s has no command %q", where, line, program, words[0])
			}
			continue
		}
		n++
		for _, w := range words {
			if f := flag.FindString(w); f != "" && !strings.Contains(help[path], f+" ") && !strings.Contains(help[path], f+",") {
				t.Errorf("%s: %q: %s has no flag %s", where, line, path, f)
			}
		}
	}
	return n
}

// helpOf returns the help of each program and each of its subcommands.
func helpOf(t *testing.T, bin string) map[string]string {
	t.Helper()
	all := map[string]string{}
	var visit func(path []string)
	visit = func(path []string) {
		out, err := exec.Command(filepath.Join(bin, path[0]), append(path[1:], "--help")...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v --help: %v\n%s", path, err, out)
		}
		all[strings.Join(path, " ")] = string(out)
		for _, sub := range subcommands(string(out)) {
			if sub != "help" && sub != "completion" {
				visit(append(append([]string{}, path...), sub))
			}
		}
	}
	for _, program := range []string{"bus", "projector", "tool-worker", "model-worker"} {
		visit([]string{program})
	}
	all["bus help"], all["bus completion"] = all["bus"], all["bus"]
	return all
}

var (
	heading    = regexp.MustCompile(`^[A-Z].*:$`)
	subcommand = regexp.MustCompile(`^  ([a-z][a-z-]*) +\S`)
)

// subcommands reads the names from the lists of a help, which stand between
// Usage and Flags.
func subcommands(help string) []string {
	_, rest, _ := strings.Cut(help, "\nUsage:\n")
	rest, _, _ = strings.Cut(rest, "\nFlags:\n")
	var names []string
	list := false
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		switch m := subcommand.FindStringSubmatch(line); {
		case heading.MatchString(line):
			list = line != "Examples:"
		case list && m != nil:
			names = append(names, m[1])
		}
	}
	return names
}
