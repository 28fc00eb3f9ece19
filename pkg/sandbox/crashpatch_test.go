package sandbox

import (
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
)

// crashPatch changes a file, deletes one and makes one in a new directory, in this
// order.
const crashPatch = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+1\n" +
	"--- b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n" +
	"--- /dev/null\n+++ ./x/c.txt\n@@ -0,0 +1 @@\n+three\n"

var (
	beforePatch = map[string]string{"a.txt": "one\n", "b.txt": "two\n"}
	afterPatch  = map[string]string{"a.txt": "1\n", "x/c.txt": "three\n"}
)

// crashingPatch applies crashPatch, and is killed when the journal comes to a point
// for the nth time.
func crashingPatch() error {
	dir, point := os.Getenv("CORREX_TEST_DIR"), os.Getenv("CORREX_TEST_POINT")
	name, nth, _ := strings.Cut(point, " ")
	left, err := strconv.Atoi(nth)
	if err != nil {
		return err
	}
	j, _, err := OpenJournal(dir, JournalOptions{Fault: func(at string) {
		if at == name {
			if left--; left == 0 {
				dieAt(name)(at)
			}
		}
	}})
	if err != nil {
		return err
	}
	runner, err := NewRunner(RunnerOptions{})
	if err != nil {
		return err
	}
	list, err := tools.Build(tools.Config{Runner: runner, FileEdit: tools.FileEditConfig{Enabled: true, AllowedPaths: []string{os.Getenv("CORREX_TEST_WORK")}}})
	if err != nil {
		return err
	}
	registry, err := tools.NewRegistry(list...)
	if err != nil {
		return err
	}
	x, err := NewExecutor(ExecutorOptions{Registry: registry, Journal: j, Dir: dir})
	if err != nil {
		return err
	}
	call := callOf("file_edit", events.T3, p{"operation": "patch", "patch": crashPatch})
	out := x.Run(background, call)
	if out.Status != Completed {
		return errors.New(out.Reason)
	}
	return errors.Join(j.Result(call.Key, []byte(out.Status)), j.Clear(call.Key))
}

// TestCrashInPatch kills a process at each step of a patch of three files. The next
// one finds all three patched and a result, or makes them what they were.
func TestCrashInPatch(t *testing.T) {
	points := []string{"begin 1", "begin.durable 1", "result 1", "result.durable 1", "clear 1", "clear.written 1"}
	for n := range 3 {
		for _, name := range []string{"staged", "staged.durable", "applied", "applied.written"} {
			points = append(points, fmt.Sprintf("%s %d", name, n+1))
		}
	}
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir, work, _ := crashSite(t, "a.txt", beforePatch["a.txt"])
			put(t, filepath.Join(work, "b.txt"), beforePatch["b.txt"])
			if !runChild(t, "patch", dir, work, "", point) {
				t.Fatal("it was not killed")
			}
			j, pending, err := OpenJournal(dir, JournalOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			if _, err := NewExecutor(ExecutorOptions{Registry: mustRegistry(t, work), Journal: j, Dir: dir}); err != nil {
				t.Fatal(err)
			}
			want := beforePatch
			if len(pending) > 0 && pending[0].State == Result || strings.HasPrefix(point, "clear") {
				want = afterPatch
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
			if got := filesBelow(t, work); !maps.Equal(got, want) {
				t.Fatalf("left %q, want %q", got, want)
			}
			if _, err := os.Lstat(filepath.Join(work, "x")); (err == nil) != has(want, "x/c.txt") {
				t.Fatalf("the new directory: %v", err)
			}
			(&bench{dir: dir, work: work}).wantClean(t)
		})
	}
}

func has(m map[string]string, name string) bool { _, ok := m[name]; return ok }

func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files[strings.TrimPrefix(path, dir+"/")] = content(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
