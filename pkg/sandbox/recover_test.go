package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// A ledgerLine is what the process that is killed says of one call: when it begins,
// with the tree before, and when it has ended, with the tree after.
type ledgerLine struct {
	Key    Key
	Call   string
	Status Status // empty: it begins
	Tree   map[string]string
}

// TestRecoverAfterKills lets a process make random calls of the file tools, of
// transactions and of shell, kills it at random times, and does what the next one does. All is
// then as before the call that was hit or as after it, that call has one end, and
// nothing is left behind.
func TestRecoverAfterKills(t *testing.T) {
	needOverlay(t, newRunner(t))
	seed, kills := seedOf(t), 25
	if soak() {
		kills = 500
	}
	dir, work, _ := crashSite(t, "a", absent)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	v := victim{T: t, dir: dir, work: work, ended: map[Key]Status{}, met: map[string]int{}}
	for n := range kills {
		v.live(seed+uint64(n)<<20, time.Duration(rnd.IntN(300_000))*time.Microsecond)
		v.recover()
		if t.Failed() {
			t.Fatalf("kill %d of CORREX_SEED=%d", n, seed)
		}
	}
	sum := map[Status]int{}
	for _, status := range v.ended {
		sum[status]++
	}
	t.Logf("%d calls ended %v, and the kills met %v", len(v.ended), sum, v.met)
	if sum[Completed] < kills/5 || v.met[string(Running)]+v.met[string(Rolling)]+v.met[string(Result)] == 0 {
		t.Error("hardly a call ended, or none was hit: this run proves nothing")
	}
}

// A victim is the process that is killed, and what is known of its calls.
type victim struct {
	*testing.T
	dir, work string
	lives     uint64
	ended     map[Key]Status // by the ledger, or by a recovery
	met       map[string]int // how far the kills found the journal
}

// live runs the process until it is killed, some time after its first call.
func (v *victim) live(seed uint64, span time.Duration) {
	v.Helper()
	v.lives++
	if err := os.WriteFile(v.ledger(), nil, 0o600); err != nil {
		v.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=victim", "CORREX_TEST_DIR="+v.dir, "CORREX_TEST_WORK="+v.work,
		"CORREX_TEST_CASE="+strconv.FormatUint(v.lives, 10), "CORREX_TEST_POINT="+strconv.FormatUint(seed, 10))
	var text bytes.Buffer
	cmd.Stderr = &text
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		v.Fatal(err)
	}
	ready, _ := bufio.NewReader(out).ReadString('\n')
	timer := time.NewTimer(span)
	<-timer.C
	_ = cmd.Process.Kill()
	if err := cmd.Wait(); err == nil || ready == "" || text.Len() > 0 {
		v.Fatalf("the process ended by itself: %v\n%s", err, text.String())
	}
}

func (v *victim) ledger() string { return filepath.Join(v.dir, "ledger") }

// recover is the next process.
func (v *victim) recover() {
	v.Helper()
	lines := v.lines()
	want := map[string]string{}
	open := Key{} // the call that was running
	for _, l := range lines {
		want, open = l.Tree, Key{}
		if l.Status == "" {
			open = l.Key
		} else {
			v.end(l.Key, l.Status)
		}
	}
	sweepLeft(v, v.dir)
	j, pending, err := OpenJournal(v.dir, JournalOptions{})
	if err != nil {
		v.Fatal(err)
	}
	defer j.Close()
	if len(pending) > 1 {
		v.Fatalf("%d calls are open, and one was made at a time: %+v", len(pending), pending)
	}
	switch {
	case len(pending) == 0 && open != (Key{}): // it had not begun to change anything
		v.met["not begun"]++
		v.end(open, Failed)
	case len(pending) == 0:
		v.met["between calls"]++
	case pending[0].State == Result:
		v.met["result"]++
		var end ledgerLine
		if err := json.Unmarshal(pending[0].Result, &end); err != nil {
			v.Fatal(err)
		}
		want = end.Tree
		if open == pending[0].Key { // else it was told already: the same end
			v.end(open, end.Status)
		}
	default:
		v.met[string(pending[0].State)]++
		v.rollBack(j, pending[0], open)
	}
	for _, e := range pending {
		if err := j.Clear(e.Key); err != nil {
			v.Fatal(err)
		}
	}
	if _, err := NewExecutor(ExecutorOptions{Registry: mustRegistry(v.T, v.work), Journal: j, Dir: v.dir}); err != nil {
		v.Fatal(err)
	}
	if got := treeOf(v, v.work); len(lines) > 0 && !maps.Equal(got, want) {
		v.Errorf("%d lines, last %s %q, journal %+v; left:\n%s", len(lines), lines[len(lines)-1].Call, lines[len(lines)-1].Status, pending, differ(got, want))
	}
	(&bench{dir: v.dir, work: v.work}).wantClean(v)
}

func (v *victim) rollBack(j *Journal, e Entry, open Key) {
	v.Helper()
	if e.Key != open {
		v.Fatalf("%s is open in the journal, and the process was at %s", e.Key, open)
	}
	files, err := j.Rollback(e.Key)
	if err != nil || EffectsOf(e, files) == events.EffectsConflict {
		v.Fatalf("rollback: %+v, %v", files, err)
	}
	v.end(e.Key, Failed)
}

// end notes the end of a call, which must be its first.
func (v *victim) end(k Key, s Status) {
	v.Helper()
	if was, ok := v.ended[k]; ok {
		v.Errorf("%s ended as %s, and again as %s", k, was, s)
	}
	v.ended[k] = s
}

// lines are the ledger's. The last may be torn.
func (v *victim) lines() []ledgerLine {
	v.Helper()
	text, err := os.ReadFile(v.ledger())
	if err != nil {
		v.Fatal(err)
	}
	var all []ledgerLine
	for line := range strings.Lines(string(text)) {
		var l ledgerLine
		if !strings.HasSuffix(line, "\n") {
			break
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			v.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// dyingVictim is the process: it makes calls until it is killed.
func dyingVictim() error {
	dir, work := os.Getenv("CORREX_TEST_DIR"), os.Getenv("CORREX_TEST_WORK")
	seed, err := strconv.ParseUint(os.Getenv("CORREX_TEST_POINT"), 10, 64)
	if err != nil {
		return err
	}
	life, err := strconv.ParseUint(os.Getenv("CORREX_TEST_CASE"), 10, 64)
	if err != nil {
		return err
	}
	j, pending, err := OpenJournal(dir, JournalOptions{})
	if err != nil || len(pending) > 0 {
		return fmt.Errorf("pending %v, %w", pending, err)
	}
	executors, err := victimsExecutors(dir, work, j)
	if err != nil {
		return err
	}
	ledger, err := os.OpenFile(filepath.Join(dir, "ledger"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	c := chance{rand.New(rand.NewPCG(seed, 2)), true}
	fmt.Println("ready")
	for n := uint64(1); ; n++ {
		call := c.call(work)
		call.Key.Started, call.Key.Invocation = life<<32|n, events.ToolInvocationID(fmt.Sprintf("t%d-%d", life, n))
		call.Request.Invocation = call.Key.Invocation
		if err := oneCall(j, executors[c.IntN(len(executors))], call, work, ledger); err != nil {
			return err
		}
	}
}

func oneCall(j *Journal, x *Executor, call Call, work string, ledger *os.File) error {
	line := ledgerLine{Key: call.Key, Call: call.Request.Tool + " " + string(call.Request.Parameters)}
	note := func() ([]byte, error) {
		text, err := json.Marshal(line)
		if err == nil {
			_, err = ledger.Write(append(slices.Clone(text), '\n'))
		}
		return text, err
	}
	var err error
	if line.Tree, err = walkTree(work); err != nil {
		return err
	}
	if _, err := note(); err != nil {
		return err
	}
	out := x.Run(background, call)
	if line.Tree, err = walkTree(work); err != nil {
		return err
	}
	line.Status = out.Status
	if out.Status != Completed && out.Effects != events.EffectsNone && out.Effects != events.EffectsRolledBack {
		return fmt.Errorf("%s: effects %s: %s", line.Call, out.Effects, out.Reason)
	}
	text, err := json.Marshal(line)
	if err == nil {
		err = j.Result(call.Key, text)
	}
	if err == nil {
		_, err = note()
	}
	return errors.Join(err, j.Clear(call.Key))
}

// victimsExecutors are some that work, and one whose tools fail when they are done.
func victimsExecutors(dir, work string, j *Journal) ([]*Executor, error) {
	runner, err := NewRunner(RunnerOptions{Holds: filepath.Join(dir, "holds")})
	if err != nil {
		return nil, err
	}
	tool, err := newTransaction(runner, work)
	if err != nil {
		return nil, err
	}
	list, err := tools.Build(tools.Config{
		Runner: runner, FileEdit: tools.FileEditConfig{Enabled: true, AllowedPaths: []string{work}},
		FileWrite: tools.FileWriteConfig{Enabled: true, AllowedPaths: []string{work}},
		Shell:     tools.ShellConfig{Enabled: true, AllowedExecutables: []string{"sh"}, WorkingDir: work, Mode: tools.ShellTransactional},
	})
	if err != nil {
		return nil, err
	}
	registry, err := tools.NewRegistry(append(list, tool)...)
	if err != nil {
		return nil, err
	}
	o := ExecutorOptions{Registry: registry, Journal: j, Dir: dir}
	works, err := NewExecutor(o)
	if err != nil {
		return nil, err
	}
	o.Delegate = failAfter{delegate: tools.NewDispatcher(registry)}
	fails, err := NewExecutor(o)
	return []*Executor{works, works, works, fails}, err
}

// call draws a call. Some are not valid, and that is part of it.
func (c chance) call(work string) Call {
	path, file := c.path(), c.file(work)
	content := strings.Repeat(fmt.Sprintf("line %d\n", c.IntN(1000)), c.IntN(4)) + strings.Repeat("x", c.IntN(2)*90_000)
	switch c.IntN(10) {
	case 0:
		return callOf("file_write", events.T3, p{"operation": "write", "path": file, "content": content})
	case 1:
		return callOf("file_write", events.T3, p{"operation": "write", "path": path, "content": content})
	case 2:
		return callOf("file_write", events.T3, p{"operation": "delete", "path": file})
	case 3:
		return callOf("file_write", events.T3, p{"operation": "mkdir", "path": path})
	case 4:
		return callOf("file_edit", events.T3, p{"operation": "append", "path": file, "content": "more\n"})
	case 5:
		return callOf("file_edit", events.T3, p{"operation": "replace", "path": file, "target": "more\n", "replacement": "less\n"})
	case 6:
		return callOf("file_edit", events.T3, p{"operation": "patch", "patch": c.patch(work)})
	case 7:
		return callOf("transaction", events.T2, p{"script": c.script(1 + c.IntN(6))})
	}
	return callOf("shell", events.T3, p{"argv": []string{"sh", "-c", c.script(1 + c.IntN(6))}})
}

// file is one that exists, if one does.
func (c chance) file(work string) string {
	tree, err := walkTree(work)
	var files []string
	for name, what := range tree {
		if strings.HasPrefix(what, "-rw") {
			files = append(files, name)
		}
	}
	if err != nil || len(files) == 0 {
		return c.path()
	}
	slices.Sort(files)
	return files[c.IntN(len(files))]
}

// patch makes a file and changes one.
func (c chance) patch(work string) string {
	text := fmt.Sprintf("--- /dev/null\n+++ %s-new%d\n@@ -0,0 +1 @@\n+new\n", c.path(), c.IntN(1000))
	old, err := os.ReadFile(filepath.Join(work, "p"))
	if err != nil {
		return text + "--- /dev/null\n+++ p\n@@ -0,0 +1 @@\n+0\n"
	}
	was := strings.TrimSpace(string(old))
	return text + fmt.Sprintf("--- p\n+++ p\n@@ -1 +1 @@\n-%s\n+%s1\n", was, was)
}
