package toolworker_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"correx/internal/access"
	"correx/internal/session"
	"correx/internal/testenv"
	"correx/pkg/events"
)

// TestKill runs workers in processes of their own, kills and freezes them at
// random while they work, and restarts the server once. Afterwards every
// invocation has exactly one end, nothing that must run once ran twice, and the
// files are what the log says.
func TestKill(t *testing.T) {
	const calls, workers, blows = 150, 4, 24
	seed := testenv.Seed(t)
	rnd, blow := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	p := newPlant(t, tokens...)
	dir := t.TempDir()
	var children []*child
	for n := range workers {
		children = append(children, p.child(fmt.Sprintf("w%d", n+1), dir))
	}
	p.announced("host-w1")

	asked := make(chan struct{})
	go func() {
		defer close(asked)
		pace := time.NewTicker(25 * time.Millisecond)
		defer pace.Stop()
		for n := range calls {
			p.ask(p.randomCall(rnd.IntN(3), n, dir, rnd.IntN(400)))
			<-pace.C
		}
	}()
	for n := range blows {
		pause := time.NewTimer(time.Duration(60+blow.IntN(150)) * time.Millisecond)
		<-pause.C
		c := children[blow.IntN(workers)]
		switch {
		case n == blows/2:
			p.restartServer()
		case n%3 == 2:
			p.freeze(c, ackWait+time.Duration(blow.IntN(600))*time.Millisecond)
		default:
			c.kill()
			c.start()
		}
	}
	<-asked
	for n := range calls {
		p.end(callID(n))
	}
	for _, token := range tokens {
		p.settled(access.ToolDurable(token))
	}
	for _, c := range children {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
	p.judge(calls, dir)
}

func callID(n int) string { return fmt.Sprintf("t%d-0", n) }

func (p *plant) randomCall(kind, n int, dir string, millis int) call {
	c := call{id: callID(n), params: fmt.Sprintf(`{"millis":%d}`, millis)}
	switch kind {
	case 0:
		c.tool = "count"
	case 1:
		c.tool = "peek"
	default:
		b, err := json.Marshal(map[string]string{"operation": "write", "path": fileOf(dir, n), "content": callID(n)})
		if err != nil {
			p.Fatal(err)
		}
		c.tool, c.params, c.tier = "file_write", string(b), events.T2
	}
	return c
}

func fileOf(dir string, n int) string { return filepath.Join(dir, "files", callID(n)) }

// restartServer stops the server and starts it again on its port, while all work.
func (p *plant) restartServer() {
	p.srv.Shutdown()
	p.serve(tokens...)
}

// freeze stops a process for longer than an ack wait. It thaws while others may
// have taken its work.
func (p *plant) freeze(c *child, d time.Duration) {
	c.signal(syscall.SIGSTOP)
	<-time.After(d)
	c.signal(syscall.SIGCONT)
}

// judge holds what happened against what the log says.
func (p *plant) judge(calls int, dir string) {
	p.Helper()
	ran := runs(p, filepath.Join(dir, "ledger"))
	sum := map[string]int{}
	for n := range calls {
		id := callID(n)
		i := p.invocation(id)
		if i.Alarms != 0 {
			p.Errorf("%s: %d records of workers do not hold", id, i.Alarms)
		}
		sum[string(i.Status())]++
		sum[i.Requested.Request.Tool]++
		switch i.Requested.Request.Tool {
		case "count":
			p.judgeCount(i, ran[id])
		case "peek":
			if ran[id] > 3 || i.Status() == session.Completed && ran[id] == 0 {
				p.Errorf("%s ran %d times and %s", id, ran[id], i.Status())
			}
		default:
			p.judgeFile(i, fileOf(dir, n))
		}
	}
	p.Logf("%v", sum)
	if sum["FAILED"] == 0 {
		p.Error("nothing was ever hit: this run proves nothing")
	}
}

func (p *plant) judgeCount(i session.Invocation, ran int) {
	p.Helper()
	if ran > 1 || i.Status() == session.Completed && ran == 0 {
		p.Errorf("%s ran %d times and %s", i.ID, ran, i.Status())
	}
	if f, ok := i.End.(events.ToolExecutionFailed); ok && f.Effects == events.EffectsNone && ran != 0 {
		p.Errorf("%s ran, and the log says that it had no effects: %s", i.ID, f.Reason)
	}
}

func (p *plant) judgeFile(i session.Invocation, path string) {
	p.Helper()
	text, err := os.ReadFile(path)
	there := err == nil
	if there && string(text) != string(i.ID) {
		p.Errorf("%s: file has %q", i.ID, text)
	}
	if there != (i.Status() == session.Completed) {
		p.Errorf("%s %s and its file is there: %v (end %s, recovered %s)", i.ID, i.Status(), there, jsonOf(i.End), jsonOf(i.Recovered))
	}
}

// TestFrozenOwnerIsFencedOff freezes the owner of a file write before its end is
// published, until another worker has ended it.
func TestFrozenOwnerIsFencedOff(t *testing.T) {
	p := newPlant(t, tokens...)
	dir := t.TempDir()
	owner := p.child("w1", dir)
	p.announced("host-w1")
	p.ask(call{id: "t1-0", tool: "count", params: `{"millis":400}`})
	p.await("the start", func() bool { return p.invocation("t1-0").Status() == session.Started })
	owner.signal(syscall.SIGSTOP)
	p.child("w2", dir)
	f := p.failed("t1-0")
	if f.Effects != events.EffectsUnknown || !f.Recoverable || !strings.Contains(f.Reason, "host-w1") {
		t.Errorf("end is %s", jsonOf(f))
	}
	owner.signal(syscall.SIGCONT)
	p.await("recovered", func() bool { return p.invocation("t1-0").Recovered != nil })
	p.settled(access.ToolDurable("count"))
	if i := p.invocation("t1-0"); i.Alarms != 0 || i.Recovered.Worker != "host-w1" {
		t.Errorf("%d alarms, recovered is %s", i.Alarms, jsonOf(i.Recovered))
	}
	if n := runs(t, filepath.Join(dir, "ledger")); n["t1-0"] != 1 {
		t.Errorf("ran %d times", n["t1-0"])
	}
}

// TestKilledOwnerComesBack kills the owner while it runs, and starts it again.
func TestKilledOwnerComesBack(t *testing.T) {
	p := newPlant(t, tokens...)
	dir := t.TempDir()
	owner := p.child("w1", dir)
	p.announced("host-w1")
	for id, tool := range map[string]string{"journalled": "count", "idempotent": "peek"} {
		p.ask(call{id: id, tool: tool, params: `{"millis":700}`})
	}
	ledger := filepath.Join(dir, "ledger")
	p.await("both to run", func() bool { n := runs(t, ledger); return n["journalled"] == 1 && n["idempotent"] == 1 })
	owner.kill()
	owner.start()
	if f := p.failed("journalled"); f.Effects != events.EffectsUnknown || !strings.Contains(f.Reason, "died") {
		t.Errorf("end is %s", jsonOf(f))
	}
	p.completed("idempotent")
	if i := p.invocation("idempotent"); i.Started.Attempt != 2 || i.Alarms != 0 {
		t.Errorf("attempt %d, %d alarms", i.Started.Attempt, i.Alarms)
	}
	if n := runs(t, ledger); n["journalled"] != 1 {
		t.Errorf("ran %d times", n["journalled"])
	}
}
