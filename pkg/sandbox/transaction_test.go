package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"correx/pkg/events"
	"correx/pkg/tools"
	"correx/pkg/tools/workspace"
)

// A transaction is a tool that runs a shell script on an overlay over its
// directory, and commits what it changed if it ends well.
type transaction struct {
	runner  tools.Runner
	roots   *workspace.Roots
	network bool // it may have done what no journal knows
	meddle  func()
}

var _ tools.CommittingTool = transaction{}

func newTransaction(runner tools.Runner, work string) (transaction, error) {
	roots, err := workspace.Open([]string{work})
	return transaction{runner: runner, roots: roots}, err
}

func (transaction) Name() string                                              { return "transaction" }
func (transaction) Description() string                                       { return "Runs a script." }
func (transaction) Tier() events.Tier                                         { return events.T2 }
func (transaction) ParametersSchema() events.Raw                              { return events.Raw(`{"type":"object"}`) }
func (transaction) ValidateRequest(events.ToolRequest) tools.ValidationResult { return tools.Valid() }
func (transaction) Example() *events.ToolExample                              { return nil }
func (transaction) Commits(events.ToolRequest) bool                           { return true }

func (t transaction) RequiredCapabilities() []events.ToolCapability {
	if t.network {
		return []events.ToolCapability{events.ShellExec, events.NetworkAccess}
	}
	return []events.ToolCapability{events.ShellExec}
}

func (t transaction) Execute(ctx context.Context, r events.ToolRequest) tools.ToolResult {
	failed := func(err error) tools.ToolResult {
		f := tools.Failure{Invocation: r.Invocation, Reason: err.Error(), Detail: tools.Detail{ExitCode: 1}}
		if !t.network {
			f.Effects = events.EffectsNone // as far as it knows
		}
		return f
	}
	var params struct{ Script string }
	if err := json.Unmarshal(r.Parameters, &params); err != nil {
		return failed(err)
	}
	scope := tools.ScopeOf(ctx)
	l := layered{t.roots.Dirs()[0], filepath.Join(scope.Dir, "upper"), filepath.Join(scope.Dir, "work")}
	for _, d := range []string{l.upper, l.work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return failed(err)
		}
	}
	exit, err := l.run(ctx, t.runner, params.Script)
	if err != nil {
		return failed(err)
	}
	if exit.Code != 0 {
		return failed(fmt.Errorf("exit %d", exit.Code))
	}
	set, err := l.read()
	if err == nil && t.meddle != nil {
		t.meddle()
	}
	if err == nil {
		err = scope.Commit(ctx, t.roots, set)
	}
	if err != nil {
		return failed(err)
	}
	return tools.Success{Invocation: r.Invocation, Output: "done"}
}

// transactionBench is a bench with a transaction over its workspace.
func transactionBench(t *testing.T, change func(*transaction)) *bench {
	t.Helper()
	runner := newRunner(t)
	needOverlay(t, runner)
	b := newBench(t, nil)
	tool, err := newTransaction(runner, b.work)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&tool)
	}
	registry, err := fileRegistry(b.work, tool)
	if err != nil {
		t.Fatal(err)
	}
	if b.executor, err = NewExecutor(ExecutorOptions{Registry: registry, Journal: b.journal, Dir: b.dir}); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTransactionCommits(t *testing.T) {
	b := transactionBench(t, nil)
	b.put(t, "a.txt", "one\n")
	b.put(t, "gone/b.txt", "two\n")
	call := callOf("transaction", events.T2, p{"script": "echo three >> a.txt; rm -r gone; mkdir d; ln -s ../a.txt d/l; chmod 700 d"})
	out := b.executor.Run(background, call)
	if out.Status != Completed {
		t.Fatalf("got %+v", out)
	}
	want := map[string]string{"a.txt": "-rw-r--r-- one\nthree\n", "d": "drwx------", "d/l": "-> ../a.txt"}
	if got := treeOf(t, b.work); !maps.Equal(got, want) {
		t.Fatal(differ(got, want))
	}
	if got, want := strings.Join(out.Receipt.Affected, " "), strings.Join([]string{b.path("a.txt"), b.path("d"), b.path("d/l"), b.path("gone"), b.path("gone/b.txt")}, " "); got != want {
		t.Errorf("affected %s", got)
	}
	for _, line := range []string{"+three\n", "-two\n", "A new directory\n", `A new symbolic link to "../a.txt"`, "A directory is deleted\n"} {
		if !strings.Contains(out.Receipt.Diff, line) {
			t.Errorf("diff lacks %q:\n%s", line, out.Receipt.Diff)
		}
	}
	if !b.journal.Has(call.Key) {
		t.Error("the journal does not know of it")
	}
	if err := b.journal.Clear(call.Key); err != nil {
		t.Fatal(err)
	}
	b.wantClean(t)
}

// TestTransactionThatFails leaves the workspace as it was, and had no effects.
func TestTransactionThatFails(t *testing.T) {
	for _, network := range []bool{false, true} {
		b := transactionBench(t, func(x *transaction) { x.network = network })
		b.put(t, "a.txt", "one\n")
		before := treeOf(t, b.work)
		call := callOf("transaction", events.T2, p{"script": "rm a.txt; mkdir d; exit 3"})
		out := b.executor.Run(background, call)
		want := events.EffectsNone
		if network { // whatever it did elsewhere
			want = events.EffectsUnknown
		}
		if out.Status != Failed || out.Effects != want || b.journal.Has(call.Key) != network {
			t.Errorf("got %+v, journalled %v", out, b.journal.Has(call.Key))
		}
		if got := treeOf(t, b.work); !maps.Equal(got, before) {
			t.Error(differ(got, before))
		}
		if err := b.journal.Clear(call.Key); err != nil {
			t.Fatal(err)
		}
		b.wantClean(t)
	}
}

// TestTransactionMeetsOthers: what changed meanwhile stays, and all the rest is as
// it was.
func TestTransactionMeetsOthers(t *testing.T) {
	for name, meddle := range map[string]func(*bench){
		"changed":        func(b *bench) { b.put(t, "b.txt", "theirs\n") },
		"deleted":        func(b *bench) { _ = os.Remove(b.path("b.txt")) },
		"in the way":     func(b *bench) { b.put(t, "new/x", "theirs\n") },
		"in a directory": func(b *bench) { b.put(t, "gone/theirs", "theirs\n") },
	} {
		t.Run(name, func(t *testing.T) {
			var b *bench
			var theirs map[string]string
			b = transactionBench(t, func(x *transaction) {
				x.meddle = func() { meddle(b); theirs = treeOf(t, b.work) }
			})
			b.put(t, "a.txt", "one\n")
			b.put(t, "b.txt", "two\n")
			b.put(t, "gone/c.txt", "three\n")
			call := callOf("transaction", events.T2, p{"script": "echo + >> a.txt; echo + >> b.txt; mkdir new; rm -r gone; ln -s x l"})
			out := b.executor.Run(background, call)
			want := events.EffectsNone
			if name == "in a directory" { // which shows when what was in it is gone
				want = events.EffectsRolledBack
			}
			if out.Status != Failed || out.Effects != want {
				t.Errorf("got %+v", out)
			}
			if got := treeOf(t, b.work); !maps.Equal(got, theirs) {
				t.Error(differ(got, theirs))
			}
			if err := b.journal.Clear(call.Key); err != nil {
				t.Fatal(err)
			}
			b.wantClean(t)
		})
	}
}

// TestTransactionRestsOnTheApproval: a set that was looked at may change nothing
// but what was seen.
func TestTransactionRestsOnTheApproval(t *testing.T) {
	for name, base := range map[string]func(b *bench) []events.BaseHash{
		"another state": func(b *bench) []events.BaseHash {
			return []events.BaseHash{{Path: b.path("a.txt"), SHA256: workspace.Hash([]byte("zero\n"))}}
		},
		"another path": func(b *bench) []events.BaseHash { return []events.BaseHash{{Path: b.path("b.txt")}} },
	} {
		t.Run(name, func(t *testing.T) {
			b := transactionBench(t, nil)
			b.put(t, "a.txt", "one\n")
			call := callOf("transaction", events.T2, p{"script": "echo two > a.txt"})
			call.Base = base(b)
			if out := b.executor.Run(background, call); out.Status != Failed || out.Effects != events.EffectsNone || !strings.Contains(out.Reason, "ask again") {
				t.Errorf("got %+v", out)
			}
			wantContent(t, b.path("a.txt"), "one\n")
			call.Base = []events.BaseHash{{Path: b.path("a.txt"), SHA256: workspace.Hash([]byte("one\n"))}}
			call.Key.Started++
			if out := b.executor.Run(background, call); out.Status != Completed {
				t.Errorf("got %+v", out)
			}
			wantContent(t, b.path("a.txt"), "two\n")
		})
	}
}

// commitTree and commitScript have every kind of change.
const (
	commitTree = "mkdir -p dir/sub gone/deep open && echo a > a && echo b > b && echo c > dir/sub/c && echo d > gone/deep/d && " +
		"echo s > swap && ln -s a link && ln -s b old && echo x > run && echo f > filetodir"
	commitScript = "echo + >> a; rm b; rm -r gone; rm -r dir; echo now a file > dir; rm filetodir; mkdir -p filetodir/new; echo n > filetodir/new/n; " +
		"ln -sfn b link; rm old; echo file > old; rm swap; ln -s a swap; chmod 755 run; chmod 700 open"
)

// crashingTransaction runs the commit, and is killed where it is told.
func crashingTransaction() error {
	dir, work := os.Getenv("CORREX_TEST_DIR"), os.Getenv("CORREX_TEST_WORK")
	name, nth, _ := strings.Cut(os.Getenv("CORREX_TEST_POINT"), " ")
	left, err := strconv.Atoi(nth)
	if err != nil {
		return err
	}
	runner, err := NewRunner(RunnerOptions{Holds: filepath.Join(dir, "holds")})
	if err != nil {
		return err
	}
	tool, err := newTransaction(runner, work)
	if err != nil {
		return err
	}
	tool.network = os.Getenv("CORREX_TEST_CASE") == "network"
	j, _, err := OpenJournal(dir, JournalOptions{Fault: dieAtNth(name, left)})
	if err != nil {
		return err
	}
	registry, err := fileRegistry(work, tool)
	if err != nil {
		return err
	}
	x, err := NewExecutor(ExecutorOptions{Registry: registry, Journal: j, Dir: dir})
	if err != nil {
		return err
	}
	call := callOf("transaction", events.T2, p{"script": commitScript})
	out := x.Run(background, call)
	if out.Status != Completed {
		return fmt.Errorf("it ended as %s: %s", out.Status, out.Reason)
	}
	if err := j.Result(call.Key, []byte(out.Status)); err != nil {
		return err
	}
	return j.Clear(call.Key)
}

// TestCrashInCommit kills a process at each point of a commit, some of them many
// times over. The next one finds all changes and a result, or makes the workspace
// what it was.
func TestCrashInCommit(t *testing.T) {
	needOverlay(t, newRunner(t))
	for _, kind := range []string{"listed", "network"} {
		for _, point := range commitPoints(kind) {
			t.Run(kind+" "+point, func(t *testing.T) {
				t.Parallel()
				dir, work, _ := crashSite(t, "a", absent)
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				sh(t, work, commitTree)
				before := treeOf(t, work)
				if !runChild(t, "transaction", dir, work, kind, point) {
					t.Fatal("it was not killed")
				}
				recoverOnce(t, dir, work, before, commitAfter, strings.HasPrefix(point, "clear"))
			})
		}
	}
}

var commitAfter = map[string]string{
	"a": "-rw-r--r-- a\n+\n", "dir": "-rw-r--r-- now a file\n", "filetodir": "drwxr-xr-x", "filetodir/new": "drwxr-xr-x",
	"filetodir/new/n": "-rw-r--r-- n\n", "link": "-> b", "old": "-rw-r--r-- file\n", "open": "drwx------", "run": "-rwxr-xr-x x\n", "swap": "-> a",
}

// commitPoints are the points of the commit: 18 steps.
func commitPoints(kind string) []string {
	points := []string{"begin 1", "begin.durable 1", "result 1", "result.durable 1", "clear 1", "clear.written 1"}
	if kind == "network" {
		points = append(points, "announced 1", "announced.durable 1")
	}
	names := []string{"staged", "staged.durable", "applied", "applied.written"}
	for n := 1; n <= 18; n++ {
		for i, name := range names {
			if soak() || kind == "listed" && i%2 == n%2 || n%6 == 1 && i == n%4 {
				points = append(points, fmt.Sprintf("%s %d", name, n))
			}
		}
	}
	return points
}

// sweepLeft does what a runner does at its start, without having this process note
// its own there.
func sweepLeft(t testing.TB, dir string) {
	t.Helper()
	holds.Lock()
	was := holds.file
	holds.Unlock()
	if was != "" {
		t.Fatalf("this process notes what it holds in %s", was)
	}
	data, err := os.ReadFile(filepath.Join(dir, "holds"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for path := range strings.SplitSeq(string(data), "\x00") {
		if path != "" {
			removeHeld(path)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "holds"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// recoverOnce is the next process.
func recoverOnce(t *testing.T, dir, work string, before, after map[string]string, over bool) {
	t.Helper()
	sweepLeft(t, dir)
	j, pending, err := OpenJournal(dir, JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	want := before
	if len(pending) > 0 && pending[0].State == Result || over {
		want = after
	} else if len(pending) > 0 {
		files, err := j.Rollback(pending[0].Key)
		if err != nil || EffectsOf(pending[0], files) == events.EffectsConflict {
			t.Fatalf("rollback: %+v, %v", files, err)
		}
	}
	for _, e := range pending {
		if err := j.Clear(e.Key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewExecutor(ExecutorOptions{Registry: mustRegistry(t, work), Journal: j, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if got := treeOf(t, work); !maps.Equal(got, want) {
		t.Fatalf("left:\n%s", differ(got, want))
	}
	(&bench{dir: dir, work: work}).wantClean(t)
}
