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
	afterPatch  = map[string]string{"a.txt": "1\n", "x/": "", "x/c.txt": "three\n"}
)

// crashingSteps makes the call that it is told, and is killed when the journal comes
// to a point for the nth time.
func crashingSteps() error {
	dir, work := os.Getenv("CORREX_TEST_DIR"), os.Getenv("CORREX_TEST_WORK")
	tool, params, _ := strings.Cut(os.Getenv("CORREX_TEST_CASE"), " ")
	name, nth, _ := strings.Cut(os.Getenv("CORREX_TEST_POINT"), " ")
	left, err := strconv.Atoi(nth)
	if err != nil {
		return err
	}
	j, _, err := OpenJournal(dir, JournalOptions{Fault: dieAtNth(name, left)})
	if err != nil {
		return err
	}
	runner, err := NewRunner(RunnerOptions{})
	if err != nil {
		return err
	}
	list, err := tools.Build(tools.Config{
		Runner: runner, FileEdit: tools.FileEditConfig{Enabled: true, AllowedPaths: []string{work}}, FileWrite: tools.FileWriteConfig{Enabled: true, AllowedPaths: []string{work}},
	})
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
	call := callOf(tool, events.T3, nil)
	call.Request.Parameters = events.Raw(params)
	out := x.Run(background, call)
	if out.Status != Completed {
		return errors.New(out.Reason)
	}
	return errors.Join(j.Result(call.Key, []byte(out.Status)), j.Clear(call.Key))
}

// stepPoints are the points of the journal for a call that makes n changes.
func stepPoints(n int) []string {
	points := []string{"begin 1", "begin.durable 1", "result 1", "result.durable 1", "clear 1", "clear.written 1"}
	for i := range n {
		for _, name := range []string{"staged", "staged.durable", "applied", "applied.written"} {
			points = append(points, fmt.Sprintf("%s %d", name, i+1))
		}
	}
	return points
}

// crashAtEachStep kills a process at each point of a call. The next one finds all
// changes and a result, or makes the workspace what it was.
func crashAtEachStep(t *testing.T, changes int, tool string, params p, before, after map[string]string) {
	raw := string(requestOf(tool, params).Parameters)
	for _, point := range stepPoints(changes) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir, work, _ := crashSite(t, "a.txt", before["a.txt"])
			for name, data := range before {
				put(t, filepath.Join(work, name), data)
			}
			if !runChild(t, "steps", dir, work, tool+" "+raw, point) {
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
			want := before
			if len(pending) > 0 && pending[0].State == Result || strings.HasPrefix(point, "clear") {
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
			if got := allBelow(t, work); !maps.Equal(got, want) {
				t.Fatalf("left %q, want %q", got, want)
			}
			(&bench{dir: dir, work: work}).wantClean(t)
		})
	}
}

func TestCrashInPatch(t *testing.T) {
	crashAtEachStep(t, 3, "file_edit", p{"operation": "patch", "patch": crashPatch}, beforePatch, afterPatch)
}

func TestCrashInMkdir(t *testing.T) {
	crashAtEachStep(t, 1, "file_write", p{"operation": "mkdir", "path": "x/y/z"},
		map[string]string{"a.txt": "one\n"}, map[string]string{"a.txt": "one\n", "x/": "", "x/y/": "", "x/y/z/": ""})
}

// allBelow is each file and what is in it, and each directory with a slash behind.
func allBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch name := strings.TrimPrefix(path, dir+"/"); {
		case err != nil || path == dir:
		case d.IsDir():
			all[name+"/"] = ""
		default:
			all[name] = content(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
