package toolworker_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"correx/internal/access"
	"correx/internal/session"
	"correx/internal/testenv"
	"correx/internal/workerhome"
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// TestRecoverAfterKills kills a worker at random moments in the middle of changes
// to files, and again while it recovers; CORREX_SOAK=1 does it 500 times.
// Afterwards every call has one end, its files are all what they were before or all
// what they were to become, as that end says, and nothing is left of it.
func TestRecoverAfterKills(t *testing.T) {
	kills, limit := 20, 3*time.Minute
	if os.Getenv("CORREX_SOAK") != "" {
		kills, limit = 500, time.Hour
	}
	seed := testenv.Seed(t)
	r := &recovery{plant: newPlantFor(t, limit, "file_write", "file_edit"), dir: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 3))}
	r.worker = r.child("w1", r.dir, r.env(true)...)
	r.announced("host-w1")
	for n := range kills {
		r.killOnce(n)
		r.worker.start(r.env(n < kills-1)...)
	}
	for _, c := range r.changes {
		r.end(c.call.id)
	}
	r.settled(access.ToolDurable("file_write"))
	r.settled(access.ToolDurable("file_edit"))
	if err := r.worker.stop(); err != nil {
		t.Error(err)
	}
	r.judge(kills)
}

// A recovery is a worker that is killed again and again, and what it was asked for.
type recovery struct {
	*plant
	dir     string
	rnd     *rand.Rand
	worker  *child
	changes []change
}

// A change is a call with what is in its directory before and after it.
type change struct {
	call          call
	dir           string
	before, after tree
}

// A tree is what is in each file, by its path, and directories with a slash behind.
type tree map[string]string

// toolsEnv names the tools of a worker process, if not those of [toolset].
const toolsEnv = "CORREX_TEST_TOOLS"

// env is that of a worker that kills itself, some microseconds after a random point
// of its journal, or of one that lives. Every second one dies when something was
// changed, or soon after.
func (r *recovery) env(dies bool) []string {
	env := []string{toolsEnv + "=files"}
	if !dies {
		return env
	}
	nth, prefix := 1+r.rnd.IntN(24), "any"
	if r.rnd.IntN(2) == 0 {
		nth, prefix = 1+r.rnd.IntN(3), "applied"
	}
	return append(env, fmt.Sprintf("%s=nth %d %d %s", faultEnv, nth, max(0, r.rnd.IntN(6000)-3000), prefix))
}

// dieAfter ends this process some microseconds after the nth time that its journal
// comes to a point whose name begins with prefix.
func dieAfter(nth, micros int, prefix string) func(string) {
	var passed atomic.Int64
	return func(point string) {
		if prefix != "any" && !strings.HasPrefix(point, prefix) || passed.Add(1) != int64(nth) {
			return
		}
		if micros == 0 {
			die()
		}
		time.AfterFunc(time.Duration(micros)*time.Microsecond, die)
	}
}

// killOnce asks for changes and waits until the worker is dead. If all is done
// before that, it is killed from here.
func (r *recovery) killOnce(n int) {
	r.Helper()
	died := make(chan struct{})
	cmd := r.worker.cmd
	go func() {
		defer close(died)
		_ = cmd.Wait()
	}()
	first := len(r.changes)
	for k := range 1 + r.rnd.IntN(4) {
		c := r.newChange(fmt.Sprintf("t%d-%d", n, k))
		r.changes = append(r.changes, c)
		r.ask(c.call)
	}
	done := false
	r.await("a death, or the end of all", func() bool {
		select {
		case <-died:
			return true
		default:
		}
		done = true
		for _, c := range r.changes[first:] {
			done = done && r.invocation(c.call.id).Status().Ended()
		}
		return done
	})
	if done {
		_ = cmd.Process.Signal(syscall.SIGKILL) // it may be dead by now
	}
	<-died
}

// newChange makes a directory with files in it, and a call that changes some.
func (r *recovery) newChange(id string) change {
	r.Helper()
	c := change{dir: filepath.Join(r.dir, "files", id), before: tree{"a.txt": "one\n", "b.txt": "two\n"}}
	for name, data := range c.before {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			r.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			r.Fatal(err)
		}
	}
	kind := fileChanges[r.rnd.IntN(len(fileChanges))]
	params := map[string]string{}
	for k, v := range kind.params {
		params[k] = strings.ReplaceAll(v, "DIR", id)
	}
	b, err := json.Marshal(params)
	if err != nil {
		r.Fatal(err)
	}
	c.call = call{id: id, tool: kind.tool, params: string(b), tier: events.T3}
	c.after = maps.Clone(c.before)
	for name, data := range kind.becomes {
		if c.after[name] = data; data == gone {
			delete(c.after, name)
		}
	}
	return c
}

const gone = "\x00" // of a file that is deleted

// fileChanges are what workers are asked for. DIR is the call's directory.
var fileChanges = []struct {
	tool    string
	params  map[string]string
	becomes tree
}{
	{"file_write", map[string]string{"operation": "write", "path": "DIR/x/y/n.txt", "content": "new"}, tree{"x/": "", "x/y/": "", "x/y/n.txt": "new"}},
	{"file_write", map[string]string{"operation": "write", "path": "DIR/a.txt", "content": strings.Repeat("large ", 40<<10)}, tree{"a.txt": strings.Repeat("large ", 40<<10)}},
	{"file_write", map[string]string{"operation": "delete", "path": "DIR/b.txt"}, tree{"b.txt": gone}},
	{"file_write", map[string]string{"operation": "mkdir", "path": "DIR/x/y/z"}, tree{"x/": "", "x/y/": "", "x/y/z/": ""}},
	{"file_edit", map[string]string{"operation": "append", "path": "DIR/a.txt", "content": "more\n"}, tree{"a.txt": "one\nmore\n"}},
	{"file_edit", map[string]string{"operation": "replace", "path": "DIR/a.txt", "target": "one", "replacement": "1"}, tree{"a.txt": "1\n"}},
	{"file_edit", map[string]string{"operation": "patch", "patch": "--- DIR/a.txt\n+++ DIR/a.txt\n@@ -1 +1 @@\n-one\n+1\n" +
		"--- DIR/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-two\n--- /dev/null\n+++ DIR/x/c.txt\n@@ -0,0 +1 @@\n+three\n"},
		tree{"a.txt": "1\n", "b.txt": gone, "x/": "", "x/c.txt": "three\n"}},
}

// fileTools are the tools whose changes can be taken back.
func fileTools(dir, own string) ([]tools.Tool, error) {
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return nil, err
	}
	runner, err := sandbox.NewRunner(sandbox.RunnerOptions{})
	if err != nil {
		return nil, err
	}
	return tools.Build(tools.Config{
		Runner: runner, Writable: []string{own},
		FileWrite: tools.FileWriteConfig{Enabled: true, AllowedPaths: []string{files}},
		FileEdit:  tools.FileEditConfig{Enabled: true, AllowedPaths: []string{files}},
	})
}

// judge holds the files against the log.
func (r *recovery) judge(kills int) {
	r.Helper()
	ends := map[string]int{}
	for _, c := range r.changes {
		i := r.invocation(c.call.id)
		want, end := c.before, "failed"
		if i.Status() == session.Completed {
			want, end = c.after, "completed"
		}
		if f, ok := i.End.(events.ToolExecutionFailed); ok {
			end += ", " + string(f.Effects)
			if f.Effects != events.EffectsNone && f.Effects != events.EffectsRolledBack {
				r.Errorf("%s of %s says %s", c.call.id, c.call.tool, jsonOf(f))
			}
		}
		ends[end]++
		if i.Alarms != 0 {
			r.Errorf("%s: %d records do not hold", c.call.id, i.Alarms)
		}
		if got := r.tree(c.dir); !maps.Equal(got, want) {
			r.Errorf("%s %s; left are %.300q, want %.300q (%s)", c.call.params, end, got, want, jsonOf(i.End))
		}
	}
	r.Logf("%d kills: %v", kills, ends)
	if ends["failed, "+string(events.EffectsRolledBack)] == 0 || ends["completed"] == 0 {
		r.Error("nothing was taken back, or nothing came to its end: this run proves nothing")
	}
	r.nothingLeft()
}

func (r *recovery) tree(dir string) tree {
	r.Helper()
	all := tree{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if d.IsDir() {
			all[name+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		all[name] = string(data)
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	return all
}

// nothingLeft expects that the worker's directory has no entry of the journal, no
// backup, and no directory of a call.
func (r *recovery) nothingLeft() {
	r.Helper()
	own := workerhome.Dir(r.state, events.RoleToolWorker, "w1")
	j, pending, err := sandbox.OpenJournal(own, sandbox.JournalOptions{})
	if err != nil {
		r.Fatal(err)
	}
	defer j.Close()
	if len(pending) > 0 {
		r.Errorf("%d entries are left in the journal", len(pending))
	}
	for _, name := range []string{"backups", "sandbox"} {
		for path, data := range r.tree(filepath.Join(own, name)) {
			if path != "kept/" { // it is always there
				r.Errorf("left in %s: %s (%d bytes)", name, path, len(data))
			}
		}
	}
}
