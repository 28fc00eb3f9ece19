package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/cli"
	"correx/internal/toolworker"
	"correx/internal/workerhome"
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools/changes"
	"correx/pkg/tools/workspace"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

// run runs the command and returns its status and what it printed.
func run(t *testing.T, state string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := cli.Env{
		Args: append([]string{"--state", state}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Lookup: func(string) (string, bool) { return "", false },
	}
	status = cli.Run(context.Background(), "tool-worker", env, newRoot)
	return status, out.String(), errs.String()
}

// leave makes a worker that died while it ran a call, and one that has a result.
func leave(t *testing.T, state, name string) {
	t.Helper()
	home, err := workerhome.Open(state, events.RoleToolWorker, name)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	j, _, err := sandbox.OpenJournal(home.Dir, sandbox.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	running := sandbox.Key{Session: "s1", Invocation: "t1-0", Started: 7, Nonce: "n1"}
	ended := sandbox.Key{Session: "s1", Invocation: "t1-1", Started: 9, Nonce: "n2"}
	for _, k := range []sandbox.Key{running, ended} {
		if err := j.Begin(k, "shell", nil, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Result(ended, []byte("{}")); err != nil {
		t.Fatal(err)
	}
}

func TestRecoverDryRun_ListsTheJournals(t *testing.T) {
	state := t.TempDir()
	leave(t, state, "w1")
	held, err := workerhome.Open(state, events.RoleToolWorker, "w2")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	status, out, errs := run(t, state, "recover", "--dry-run")
	if status != cli.StatusOK || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	for _, want := range [][]string{
		{"w1", "s1", "t1-0", "shell", "running", "takes it back"}, {"w1", "t1-1", "result", "publishes"}, {"w2", "in use"},
	} {
		if !hasLine(out, want) {
			t.Errorf("no line has %q:\n%s", want, out)
		}
	}
	if _, again, _ := run(t, state, "recover", "--dry-run"); again != out {
		t.Errorf("listing changed what is listed:\n%s\n%s", out, again)
	}
}

func hasLine(text string, words []string) bool {
	for line := range strings.Lines(text) {
		has := true
		for _, w := range words {
			has = has && strings.Contains(line, w)
		}
		if has {
			return true
		}
	}
	return false
}

// TestRecoverDryRun_Steps: what a commit was at when its worker died.
func TestRecoverDryRun_Steps(t *testing.T) {
	state, work := t.TempDir(), t.TempDir()
	leaveCommit(t, state, work)
	status, out, errs := run(t, state, "recover", "--dry-run")
	if status != cli.StatusOK || errs != "" {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	for _, want := range [][]string{
		{"s1/t1-0: ", "gone", "was removed and becomes a directory again"}, {"new", "is a new directory and is removed"},
		{"link", "is a new symbolic link and is removed"}, {"run", "becomes the file again"}, {"directory of a call", "s1/t1-0"},
	} {
		if !hasLine(out, want) {
			t.Errorf("no line has %q:\n%s", want, out)
		}
	}
	for path, there := range map[string]bool{"gone": false, "new": true, "link": true} {
		if _, err := os.Lstat(filepath.Join(work, path)); (err == nil) != there {
			t.Errorf("listing touched %s", path)
		}
	}
}

// leaveCommit makes a worker that died when it had committed all of a set.
func leaveCommit(t *testing.T, state, work string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	home, err := workerhome.Open(state, events.RoleToolWorker, "w1")
	must(err)
	defer home.Close()
	j, _, err := sandbox.OpenJournal(home.Dir, sandbox.JournalOptions{})
	must(err)
	defer j.Close()
	must(os.MkdirAll(filepath.Join(home.Dir, "sandbox", "s1", "t1-0", "upper"), 0o700))
	real, err := filepath.EvalSymlinks(work)
	must(err)
	must(os.Mkdir(filepath.Join(real, "gone"), 0o755))
	must(os.WriteFile(filepath.Join(real, "run"), []byte("x"), 0o644))
	roots, err := workspace.Open([]string{real})
	must(err)
	defer roots.Close()
	file := changes.State{Type: changes.File, Mode: 0o644, Size: 1, SHA256: workspace.Hash([]byte("x"))}
	executable := file
	executable.Mode = 0o755
	dir := changes.State{Type: changes.Directory, Mode: 0o755}
	plan, err := changes.Set{Changes: []changes.Change{
		{Path: real + "/gone", Kind: changes.Deleted, Before: dir},
		{Path: real + "/link", Kind: changes.Created, After: changes.State{Type: changes.Symlink, Target: "run"}},
		{Path: real + "/new", Kind: changes.Created, After: dir},
		{Path: real + "/run", Kind: changes.Changed, Before: file, After: executable, Data: []byte("x")},
	}}.Plan(roots)
	must(err)
	key := sandbox.Key{Session: "s1", Invocation: "t1-0", Started: 7, Nonce: "n1"}
	rec, err := j.Commit(key, "shell", plan)
	must(err)
	must(plan.Apply(t.Context(), rec))
}

func TestRecoverDryRun_JSON(t *testing.T) {
	state := t.TempDir()
	leave(t, state, "w1")
	status, out, errs := run(t, state, "recover", "--dry-run", "--json", "--name", "w1")
	var all []toolworker.Pending
	if err := json.Unmarshal([]byte(out), &all); status != cli.StatusOK || err != nil || len(all) != 1 || len(all[0].Entries) != 2 {
		t.Errorf("status %d, %v, stdout %q, stderr %q", status, err, out, errs)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"recover"}, {"recover", "--dry-run", "x"}, {"--no-such-flag"}, {"run", "--concurrency", "many"},
	} {
		if status, _, errs := run(t, t.TempDir(), args...); status != cli.StatusUsage || errs == "" {
			t.Errorf("%q: status %d, stderr %q", args, status, errs)
		}
	}
}

func TestFaultsAreSaid(t *testing.T) {
	state := t.TempDir()
	if status, _, errs := run(t, state, "recover", "--dry-run", "--name", "nobody"); status != cli.StatusFailed || !strings.Contains(errs, "nobody") {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	home, err := workerhome.Open(state, events.RoleToolWorker, "w1")
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	if status, _, errs := run(t, state, "--name", "w1"); status != cli.StatusFailed || !strings.Contains(errs, "w1") {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	config := filepath.Join(state, "correx.yaml")
	if err := os.WriteFile(config, []byte("tools:\n  file_read:\n    enabled: true\n    allowed_pahts: [/x]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := run(t, state, "--name", "w2"); status == cli.StatusOK || !strings.Contains(errs, "allowed_pahts") {
		t.Errorf("status %d, stderr %q", status, errs)
	}
}

func TestHelpNamesTheExitStatuses(t *testing.T) {
	status, out, _ := run(t, t.TempDir(), "--help")
	if status != cli.StatusOK || !strings.Contains(out, "Exit status") || !strings.Contains(out, "recover") {
		t.Errorf("status %d, help %q", status, out)
	}
}
