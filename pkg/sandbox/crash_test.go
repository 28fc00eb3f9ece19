package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// childEnv makes the test binary a process that is killed. Its value says what
// it does.
const childEnv = "CORREX_TEST_CHILD"

// child is the main function of such a process.
func child() int {
	var err error
	switch os.Getenv(childEnv) {
	case "run":
		err = crashingRun()
	case "recover":
		err = crashingRecovery()
	case "steps":
		err = crashingSteps()
	case "worker":
		err = holdingWorker()
	case "transaction":
		err = crashingTransaction()
	case "victim":
		err = dyingVictim()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// dieAt kills this process at a point of the journal.
func dieAt(want string) func(string) {
	return func(point string) {
		if point == want {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // until it arrives
		}
	}
}

// dieAtNth kills this process when it comes to a point of the journal for the nth
// time.
func dieAtNth(want string, n int) func(string) {
	var mu sync.Mutex
	return func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if point == want {
			if n--; n == 0 {
				dieAt(want)(point)
			}
		}
	}
}

// crashCases are the calls that are killed in the middle.
var crashCases = []struct {
	name   string
	tool   string
	params p
	fails  bool // the tool fails after its change
	before string
	after  string
}{
	{"new file in new directories", "file_write", p{"operation": "write", "path": "x/y/a.txt", "content": "after"}, false, absent, "after"},
	{"overwrite", "file_write", p{"operation": "write", "path": "a.txt", "content": "after"}, false, "before", "after"},
	{"delete", "file_write", p{"operation": "delete", "path": "a.txt"}, false, "before", absent},
	{"append", "file_edit", p{"operation": "append", "path": "a.txt", "content": "+"}, false, "before", "before+"},
	{"replace in a large file", "file_edit", p{"operation": "replace", "path": "a.txt", "target": "END", "replacement": "end"}, false, large + "END", large + "end"},
	{"failed overwrite", "file_write", p{"operation": "write", "path": "a.txt", "content": "after"}, true, "before", "after"},
	{"failed new file", "file_write", p{"operation": "write", "path": "x/y/a.txt", "content": "after"}, true, absent, "after"},
	{"failed delete", "file_write", p{"operation": "delete", "path": "a.txt"}, true, "before", absent},
}

var large = strings.Repeat("0123456789abcdef", 8<<10) // more than stands in the journal itself

// crashingRun runs one case as a worker would, in the directory that it is told.
func crashingRun() error {
	dir, work := os.Getenv("CORREX_TEST_DIR"), os.Getenv("CORREX_TEST_WORK")
	for _, c := range crashCases {
		if c.name != os.Getenv("CORREX_TEST_CASE") {
			continue
		}
		j, _, err := OpenJournal(dir, JournalOptions{Fault: dieAt(os.Getenv("CORREX_TEST_POINT"))})
		if err != nil {
			return err
		}
		registry, err := fileRegistry(work)
		if err != nil {
			return err
		}
		var delegate tools.Executor = tools.NewDispatcher(registry)
		if c.fails {
			delegate = failAfter{delegate: delegate}
		}
		x, err := NewExecutor(ExecutorOptions{Registry: registry, Journal: j, Dir: dir, Delegate: delegate})
		if err != nil {
			return err
		}
		call := callOf(c.tool, events.T3, c.params)
		out := x.Run(background, call)
		return errors.Join(j.Result(call.Key, []byte(out.Status)), j.Clear(call.Key))
	}
	return errors.New("no such case")
}

// crashingRecovery takes back what a killed process left.
func crashingRecovery() error {
	j, pending, err := OpenJournal(os.Getenv("CORREX_TEST_DIR"), JournalOptions{Fault: dieAt(os.Getenv("CORREX_TEST_POINT"))})
	if err != nil {
		return err
	}
	for _, e := range pending {
		if _, err := j.Rollback(e.Key); err != nil {
			return err
		}
		if err := j.Clear(e.Key); err != nil {
			return err
		}
	}
	return nil
}

// runChild starts this binary as a child, and says whether it was killed.
func runChild(t *testing.T, what, dir, work, name, point string) (killed bool) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+what, "CORREX_TEST_DIR="+dir, "CORREX_TEST_WORK="+work, "CORREX_TEST_CASE="+name, "CORREX_TEST_POINT="+point)
	text, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("child: %v\n%s", err, text)
	}
	return true
}

// TestCrash kills a process at each point where its journal syncs, and looks what
// the next one makes of it.
func TestCrash(t *testing.T) {
	for _, c := range crashCases {
		t.Run(c.name, func(t *testing.T) {
			reached := 0
			for _, point := range FaultPoints {
				if strings.HasPrefix(point, "announced") {
					reached++
					continue // of a commit: see TestCrashInCommit
				}
				t.Run(point, func(t *testing.T) {
					t.Parallel()
					dir, work, path := crashSite(t, c.params["path"].(string), c.before)
					killed := runChild(t, "run", dir, work, c.name, point)
					if killed == (strings.HasPrefix(point, "roll") && !c.fails) {
						t.Fatalf("killed: %v", killed)
					}
					checkRecovery(t, dir, work, path, point, c.before, c.after, c.fails)
				})
				reached++
			}
			if reached != len(FaultPoints) {
				t.Fatal("not every point was tried")
			}
		})
	}
}

func crashSite(t *testing.T, rel, before string) (dir, work, path string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, work = filepath.Join(top, "worker"), filepath.Join(top, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(work, rel)
	if before != absent {
		put(t, path, before)
	}
	return dir, work, path
}

// checkRecovery is the next process.
func checkRecovery(t *testing.T, dir, work, path, point, before, after string, fails bool) {
	t.Helper()
	if got := content(path); got != before && got != after {
		t.Fatalf("the file is neither before nor after: %.40q", got)
	}
	b := &bench{dir: dir, work: work}
	j, pending, err := OpenJournal(dir, JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := NewExecutor(ExecutorOptions{Registry: mustRegistry(t, work), Journal: j, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	want := before
	switch {
	case len(pending) == 0: // it had not begun, or it was over
		if !fails && strings.HasPrefix(point, "clear") || !fails && strings.HasPrefix(point, "roll") {
			want = after
		}
	case pending[0].State == Result:
		if got := string(pending[0].Result); got != string(Completed) && !fails {
			t.Fatalf("result %q", got)
		}
		if !fails {
			want = after
		}
	default:
		if strings.HasPrefix(point, "clear") {
			t.Fatalf("state %s after the result was written", pending[0].State)
		}
		if files, err := j.Rollback(pending[0].Key); err != nil || EffectsOf(pending[0], files) == events.EffectsConflict {
			t.Fatalf("rollback: %+v, %v", files, err)
		}
	}
	if len(pending) > 0 {
		if err := j.Clear(pending[0].Key); err != nil {
			t.Fatal(err)
		}
	}
	wantContent(t, path, want)
	if want == absent && filepath.Dir(path) != work {
		if _, err := os.Stat(filepath.Join(work, "x")); !errors.Is(err, os.ErrNotExist) {
			t.Fatal("the directories that were made are left")
		}
	}
	b.wantClean(t)
}

func mustRegistry(t *testing.T, work string) *tools.Registry {
	t.Helper()
	r, err := fileRegistry(work)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCrashInRecovery kills the process that recovers, too, and recovers again.
func TestCrashInRecovery(t *testing.T) {
	for _, c := range crashCases[:5] {
		t.Run(c.name, func(t *testing.T) {
			for _, point := range []string{"rolling", "rolling.durable", "rolled", "rolled.durable", "clear"} {
				t.Run(point, func(t *testing.T) {
					t.Parallel()
					dir, work, path := crashSite(t, c.params["path"].(string), c.before)
					if !runChild(t, "run", dir, work, c.name, "applied") { // changed, and not recorded as such
						t.Fatal("it was not killed")
					}
					if content(path) != c.after {
						t.Fatal("it was killed before its change")
					}
					if !runChild(t, "recover", dir, work, c.name, point) {
						t.Fatal("recovery was not killed")
					}
					checkRecovery(t, dir, work, path, "rolling", c.before, c.after, true)
				})
			}
		})
	}
}
