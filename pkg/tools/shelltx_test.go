package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// A bench is a workspace with a shell that is run as a worker runs it.
type txBench struct {
	t    *testing.T
	dir  string // workspace
	kept string
	x    *sandbox.Executor
	tool tools.Tool
	n    int
}

func newTxBench(t *testing.T, c tools.ShellConfig) *txBench {
	t.Helper()
	b := &txBench{t: t, dir: realDir(t), kept: filepath.Join(realDir(t), "changes")}
	home := realDir(t)
	runner, err := sandbox.NewRunner(sandbox.RunnerOptions{Scratch: filepath.Join(home, "sandbox")})
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Overlays(); err != nil {
		t.Skipf("no overlays here: %v", err)
	}
	c.Enabled, c.WorkingDir, c.Kept = true, b.dir, b.kept
	if c.AllowedExecutables == nil {
		c.AllowedExecutables = []string{"sh"}
	}
	list, err := tools.Build(tools.Config{Shell: c, Runner: runner, Writable: []string{home}})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := tools.NewRegistry(list...)
	if err != nil {
		t.Fatal(err)
	}
	journal, _, err := sandbox.OpenJournal(home, sandbox.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { journal.Close() })
	b.x, err = sandbox.NewExecutor(sandbox.ExecutorOptions{Registry: registry, Journal: journal, Dir: home, Isolation: runner.Isolation()})
	if err != nil {
		t.Fatal(err)
	}
	b.tool, _ = registry.Resolve("shell")
	return b
}

func (b *txBench) call(tool string, parameters any, base []events.BaseHash) sandbox.Outcome {
	b.t.Helper()
	b.n++
	r := request(b.t, tool, parameters)
	r.Invocation = events.ToolInvocationID(fmt.Sprint("t1-", b.n))
	return b.x.Run(context.Background(), sandbox.Call{
		Key: sandbox.Key{Session: "s1", Invocation: r.Invocation, Started: 1, Nonce: "n"}, Request: r, Tier: events.T3, Base: base,
	})
}

func (b *txBench) sh(script string) sandbox.Outcome {
	return b.call("shell", argv("sh", "-c", script), nil)
}

func (b *txBench) write(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

// tree is the workspace as name → content; directories end with a slash.
func (b *txBench) tree() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == b.dir {
			return err
		}
		rel, _ := filepath.Rel(b.dir, path)
		switch {
		case d.IsDir():
			out[rel+"/"] = ""
		case d.Type()&os.ModeSymlink != 0:
			out[rel], err = os.Readlink(path)
			out[rel] = "→ " + out[rel]
		default:
			data, rerr := os.ReadFile(path)
			out[rel], err = string(data), rerr
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *txBench) wantTree(want map[string]string) {
	b.t.Helper()
	got := b.tree()
	if len(got) != len(want) {
		b.t.Errorf("workspace has %v, want %v", got, want)
		return
	}
	for name, text := range want {
		if have, ok := got[name]; !ok || have != text {
			b.t.Errorf("workspace has %v, want %v", got, want)
			return
		}
	}
}

func TestTransactionKeepsWhatASuccessChanged(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{})
	b.write("keep.txt", "keep\n")
	b.write("edit.txt", "one\ntwo\n")
	b.write("old/gone.txt", "gone\n")
	out := b.sh("echo three >> edit.txt; mkdir -p new/deep; echo hi > new/deep/a.txt; rm -r old; ln -s keep.txt link; echo said")
	if out.Status != sandbox.Completed || out.Receipt.Output != "said\n" {
		t.Fatalf("outcome is %+v", out)
	}
	b.wantTree(map[string]string{
		"keep.txt": "keep\n", "edit.txt": "one\ntwo\nthree\n", "new/": "", "new/deep/": "", "new/deep/a.txt": "hi\n", "link": "→ keep.txt",
	})
	for _, part := range []string{"+three", "+hi", "-gone", "edit.txt", "link"} {
		if !strings.Contains(out.Receipt.Diff, part) {
			t.Errorf("diff lacks %q:\n%s", part, out.Receipt.Diff)
		}
	}
	var listed struct{ Created, Changed, Deleted []string }
	if err := json.Unmarshal(out.Receipt.Structured, &listed); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(b.dir, name) }
	if !slices.Contains(listed.Created, at("new/deep/a.txt")) || !slices.Contains(listed.Changed, at("edit.txt")) || !slices.Contains(listed.Deleted, at("old/gone.txt")) {
		t.Errorf("listed %+v", listed)
	}
	if !slices.Contains(out.Receipt.Affected, at("edit.txt")) || slices.Contains(out.Receipt.Affected, at("keep.txt")) {
		t.Errorf("affected %v", out.Receipt.Affected)
	}
}

func TestTransactionDropsWhatAFailureChanged(t *testing.T) {
	for name, script := range map[string]string{
		"exit":     "rm edit.txt; echo x > new.txt; echo why >&2; exit 3",
		"signal":   "rm edit.txt; kill -9 $$",
		"time-out": "rm edit.txt; sleep 60",
	} {
		t.Run(name, func(t *testing.T) {
			c := tools.ShellConfig{}
			if name == "time-out" {
				c.Timeout = 300_000_000
			}
			b := newTxBench(t, c)
			b.write("edit.txt", "one\n")
			out := b.sh(script)
			if out.Status != sandbox.Failed || out.Effects != events.EffectsNone || !strings.Contains(out.Reason, "not kept") {
				t.Errorf("outcome is %+v", out)
			}
			b.wantTree(map[string]string{"edit.txt": "one\n"})
		})
	}
}

func TestTransactionOfOneThatChangesNothing(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{})
	b.write("edit.txt", "one\n")
	out := b.sh("cat edit.txt; touch -d 2001-01-01 $TMPDIR/mine")
	if out.Status != sandbox.Completed || len(out.Receipt.Affected) != 0 || out.Receipt.Diff != "" {
		t.Errorf("outcome is %+v", out)
	}
	b.wantTree(map[string]string{"edit.txt": "one\n"})
}

// TestTransactionIsOutOfTheCommandsReach: what the overlay is made of is no place
// that the command can write to.
func TestTransactionIsOutOfTheCommandsReach(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{})
	out := b.sh(`cd "$HOME/.." && ls -a && touch overlay/0/upper/planted`)
	if out.Status != sandbox.Failed {
		t.Errorf("outcome is %+v", out)
	}
	b.wantTree(map[string]string{})
}

func TestTransactionRefusesWhatCannotBeCommitted(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{})
	b.write("a.txt", "one\n")
	out := b.sh("echo two > a.txt; mkfifo pipe")
	if out.Status != sandbox.Failed || out.Effects != events.EffectsNone || !strings.Contains(out.Reason, "pipe") {
		t.Errorf("outcome is %+v", out)
	}
	b.wantTree(map[string]string{"a.txt": "one\n"})
}

func TestReview(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{Commit: tools.CommitReview})
	b.write("a.txt", "one\n")
	out := b.sh("echo two > a.txt; echo new > b.txt")
	if out.Status != sandbox.Completed || out.Receipt.FollowUp == nil || out.Receipt.FollowUp.Tool != "shell_commit" {
		t.Fatalf("outcome is %+v", out)
	}
	if !strings.Contains(out.Receipt.Diff, "+two") || len(out.Receipt.Affected) != 0 {
		t.Errorf("receipt is %+v", out.Receipt)
	}
	b.wantTree(map[string]string{"a.txt": "one\n"})
	r := request(t, "shell_commit", string(out.Receipt.FollowUp.Parameters))
	p := b.x.Preview(context.Background(), r)
	if !p.Valid || !strings.Contains(p.Diff, "-one\n+two") || len(p.Base) != 2 || len(p.Affected) != 2 {
		t.Fatalf("preview is %+v", p)
	}
	done := b.call("shell_commit", string(out.Receipt.FollowUp.Parameters), p.Base)
	if done.Status != sandbox.Completed || !strings.Contains(done.Receipt.Diff, "+two") || len(done.Receipt.Affected) != 2 {
		t.Fatalf("outcome is %+v", done)
	}
	b.wantTree(map[string]string{"a.txt": "two\n", "b.txt": "new\n"})
	if again := b.call("shell_commit", string(out.Receipt.FollowUp.Parameters), p.Base); again.Status == sandbox.Completed {
		t.Errorf("a second commit: %+v", again)
	}
	if left, _ := os.ReadDir(b.kept); len(left) != 1 || !strings.HasSuffix(left[0].Name(), ".committed") {
		t.Errorf("kept %v", left)
	}
}

func TestReviewIsRefusedWhenTheFilesMoved(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{Commit: tools.CommitReview})
	b.write("a.txt", "one\n")
	out := b.sh("echo two > a.txt")
	r := request(t, "shell_commit", string(out.Receipt.FollowUp.Parameters))
	p := b.x.Preview(context.Background(), r)
	b.write("a.txt", "somebody else\n")
	if now := b.x.Preview(context.Background(), r); now.Valid || !strings.Contains(now.Reason, "a.txt") {
		t.Errorf("preview is %+v", now)
	}
	if done := b.call("shell_commit", string(out.Receipt.FollowUp.Parameters), p.Base); done.Status == sandbox.Completed {
		t.Errorf("outcome is %+v", done)
	}
	b.wantTree(map[string]string{"a.txt": "somebody else\n"})
}

func TestReviewOfWhatIsNotKept(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{Commit: tools.CommitReview})
	for _, name := range []string{strings.Repeat("0", 64), "../../etc/passwd", ""} {
		p := b.x.Preview(context.Background(), request(t, "shell_commit", p{"changes": name}))
		if p.Valid || p.Reason == "" {
			t.Errorf("%q: preview is %+v", name, p)
		}
	}
}

func TestDryRun(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{AllowedExecutables: []string{}, Executables: []tools.Executable{{Name: "sh", DryRun: true}}})
	b.write("a.txt", "one\n")
	script := argv("sh", "-c", "echo two > a.txt; echo $((1+1)) > n.txt")
	pre := b.x.Preview(context.Background(), request(t, "shell", script))
	if !pre.Valid || !strings.Contains(pre.Diff, "+two") || len(pre.Base) != 2 || pre.Tier != events.T3 {
		t.Fatalf("preview is %+v", pre)
	}
	b.wantTree(map[string]string{"a.txt": "one\n"})
	if out := b.call("shell", script, pre.Base); out.Status != sandbox.Completed {
		t.Errorf("outcome is %+v", out)
	}
	b.wantTree(map[string]string{"a.txt": "two\n", "n.txt": "2\n"})

	pre = b.x.Preview(context.Background(), request(t, "shell", argv("sh", "-c", "echo three > a.txt")))
	b.write("a.txt", "moved\n")
	if out := b.call("shell", argv("sh", "-c", "echo three > a.txt"), pre.Base); out.Status != sandbox.Failed || !strings.Contains(out.Reason, "changed since") {
		t.Errorf("outcome is %+v", out)
	}
	b.wantTree(map[string]string{"a.txt": "moved\n", "n.txt": "2\n"})
	if failed := b.x.Preview(context.Background(), request(t, "shell", argv("sh", "-c", "exit 1"))); !failed.Valid || !strings.Contains(strings.Join(failed.Notes, "\n"), "dry run failed") {
		t.Errorf("preview is %+v", failed)
	}
}

func TestNotesOfAShellCall(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{AllowedExecutables: []string{"ls"}, Executables: []tools.Executable{{Name: "sh", Network: true}}})
	notes := func(parameters any) string {
		return strings.Join(b.x.Preview(context.Background(), request(t, "shell", parameters)).Notes, "\n")
	}
	if n := notes(argv("ls")); !strings.Contains(n, "runs in "+b.dir) || strings.Contains(n, "network") || strings.Contains(n, "script") {
		t.Errorf("notes are %s", n)
	}
	if n := notes(argv("sh", "-c", "true")); !strings.Contains(n, "network") || !strings.Contains(n, "any other program") {
		t.Errorf("notes are %s", n)
	}
}

func TestDirOfAShellCall(t *testing.T) {
	b := newTxBench(t, tools.ShellConfig{AllowedExecutables: []string{"pwd"}})
	b.write("sub/a.txt", "")
	if err := os.Symlink("/etc", filepath.Join(b.dir, "out")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": b.dir, ".": b.dir, "sub": b.dir + "/sub", b.dir + "/sub": b.dir + "/sub"} {
		parameters := p{"argv": []string{"pwd"}}
		if dir != "" {
			parameters["dir"] = dir
		}
		if out := b.call("shell", parameters, nil); out.Receipt.Output != want+"\n" {
			t.Errorf("dir %q: %+v", dir, out)
		}
	}
	for dir, want := range map[string]string{"..": "not in", "/etc": "not in", "out": "not in", "none": "no directory", "sub/a.txt": "no directory"} {
		if out := b.call("shell", p{"argv": []string{"pwd"}, "dir": dir}, nil); out.Status != sandbox.Rejected || !strings.Contains(out.Reason, want) {
			t.Errorf("dir %q: %+v", dir, out)
		}
	}
}
