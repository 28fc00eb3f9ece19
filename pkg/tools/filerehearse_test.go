package tools_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// A weakRunner starts nothing, and confines by what it says.
type weakRunner struct{ isolation events.Isolation }

func (w weakRunner) Isolation() events.Isolation { return w.isolation }

func (weakRunner) Run(context.Context, tools.Command) (tools.Exit, error) {
	panic("nothing is to be started")
}

// An endingRunner ends as it is told, and starts nothing.
type endingRunner struct {
	weakRunner
	exit tools.Exit
	err  error
	do   func(tools.Command)
}

func (e endingRunner) Run(_ context.Context, c tools.Command) (tools.Exit, error) {
	if e.do != nil {
		e.do(c)
	}
	return e.exit, e.err
}

// TestPatchOfAProgramThatFails: whatever the program does instead of patching,
// nothing is changed, and the preview is not valid.
func TestPatchOfAProgramThatFails(t *testing.T) {
	write := func(name, data string) func(tools.Command) {
		return func(c tools.Command) { put(t, c.Dir+"/"+name, data) }
	}
	for _, c := range []struct {
		name        string
		runner      endingRunner
		says        string
		recoverable bool
	}{
		{"it does nothing", endingRunner{}, "makes something else of these files", false},
		{"it changes something else", endingRunner{do: write("f0", "2\n")}, "makes something else of these files", false},
		{"it leaves a file", endingRunner{do: func(c tools.Command) { put(t, c.Dir+"/f0", "1\n"); put(t, c.Dir+"/f0.orig", "one\n") }}, "left 2 files where 1 were expected", false},
		{"it puts a link there", endingRunner{do: func(c tools.Command) {
			put(t, c.Dir+"/real", "1\n")
			if err := errors.Join(os.Remove(c.Dir+"/f0"), os.Symlink("real", c.Dir+"/f0")); err != nil {
				t.Error(err)
			}
		}}, "left 2 files", false},
		{"it refuses", endingRunner{exit: tools.Exit{Code: 1, Stdout: tools.Capture{Head: []byte("Hunk #1 FAILED")}}}, "ended with 1, and nothing was changed; it said: Hunk #1 FAILED", false},
		{"it takes too long", endingRunner{exit: tools.Exit{Code: -1, TimedOut: true}}, "took longer than 10s", true},
		{"it is stopped", endingRunner{exit: tools.Exit{Code: -1, Cancelled: true}}, "stopped while", true},
		{"it is killed", endingRunner{exit: tools.Exit{Code: -1, Signal: "killed"}}, "was killed", true},
		{"it does not start", endingRunner{err: unix.ENOMEM}, "start the program patch", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := realDir(t)
			put(t, dir+"/a.txt", "one\n")
			c.runner.weakRunner = weakRunner{events.IsolationNone}
			tool := build(t, tools.Config{Runner: c.runner, FileEdit: tools.FileEditConfig{Enabled: true, AllowedPaths: []string{dir}}})["file_edit"]
			params := p{"operation": "patch", "patch": head + "@@ -1 +1 @@\n-one\n+1\n"}
			f, ok := run(t, tool, params).(tools.Failure)
			if !ok || !strings.Contains(f.Reason, c.says) || f.Recoverable != c.recoverable || get(t, dir+"/a.txt") != "one\n" {
				t.Fatalf("got %+v, left %q", f, get(t, dir+"/a.txt"))
			}
			if v := tool.(tools.Previewer).Preview(context.Background(), request(t, "file_edit", params)); v.Valid || !strings.Contains(v.Reason, c.says) {
				t.Fatalf("preview %+v", v)
			}
		})
	}
}

// TestPatchIsOfferedWhereItCanRun: without a program, or below the isolation that is
// configured, file_edit has no patch and says so.
func TestPatchIsOfferedWhereItCanRun(t *testing.T) {
	dir := realDir(t)
	put(t, dir+"/a.txt", "one\n")
	for _, c := range []struct {
		name   string
		config tools.Config
		off    string // "": it is offered
	}{
		{"as it is", tools.Config{Runner: weakRunner{events.IsolationNone}}, ""},
		{"enough", tools.Config{Runner: weakRunner{events.IsolationFull}, MinIsolation: events.IsolationFSOnly}, ""},
		{"nobody starts processes", tools.Config{}, "nothing was given that starts processes"},
		{"not enough", tools.Config{Runner: weakRunner{events.IsolationFSOnly}, MinIsolation: events.IsolationFull}, `confines processes by "fs-only", and at least "full" is configured`},
		{"the program lies where tools write", tools.Config{Runner: weakRunner{events.IsolationFull}, Writable: []string{"/"}}, "where tools may write"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.FileEdit = tools.FileEditConfig{Enabled: true, AllowedPaths: []string{dir}}
			list, err := tools.Build(c.config)
			if err != nil {
				t.Fatal(err)
			}
			tool := list[0]
			schema := strings.Contains(tool.ParametersSchema().String(), `"patch"`)
			told := strings.Contains(tool.Description(), "unified diff")
			v := tool.ValidateRequest(request(t, "file_edit", p{"operation": "patch", "patch": head + "@@ -1 +1 @@\n-one\n+1\n"}))
			if offered := c.off == ""; schema != offered || told != offered || v.OK() != offered || !strings.Contains(v.Reason(), c.off) {
				t.Fatalf("in the schema %v, told %v, %q", schema, told, v.Reason())
			}
			if v := tool.ValidateRequest(request(t, "file_edit", p{"operation": "append", "path": "a.txt", "content": "x"})); !v.OK() {
				t.Fatal(v.Reason())
			}
		})
	}
}
