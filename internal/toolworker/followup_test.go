package toolworker_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/access"
	"correx/internal/session"
	"correx/internal/toolworker"
	"correx/pkg/events"
	"correx/pkg/tools"
)

// second follows up.
type second struct{ testTool }

func (second) FollowUpOnly() bool { return true }
func (second) Preview(context.Context, events.ToolRequest) tools.Preview {
	return tools.Preview{Valid: true, Diff: "+hi", Notes: []string{"the real diff"}}
}

func reviewing(o *toolworker.Options) {
	t := o.Tools[1].(testTool)
	first, follow := t, t
	first.name, follow.name = "first", "second"
	o.Tools = []tools.Tool{first, second{follow}, t}
}

// Whichever of two workers ran a call, what follows it up goes there, preview
// and run alike: what it left lies nowhere else.
func TestRun_AFollowUpRunsWhereItsRunDid(t *testing.T) {
	p := newPlant(t, "first", "second", "count")
	at := map[events.WorkerID]running{}
	for _, name := range []string{"w1", "w2"} {
		w := p.start(name, reviewing)
		at[w.id] = w
		p.announced(string(w.id))
	}
	const n = 8
	for k := range n {
		id := fmt.Sprintf("t%d-0", k)
		p.ask(call{id: id, tool: "first", params: `{"asks":true}`})
		if r := p.completed(id).Receipt; r.FollowUp == nil || r.FollowUp.Tool != "second" {
			t.Fatalf("receipt is %s", jsonOf(r))
		}
		c := call{id: id + "-c", tool: "second", params: `{}`, tier: events.T2, after: id}
		p.request(c)
		p.await("a preview", func() bool { return p.invocation(c.id).Previewed != nil })
		p.approve(c)
		p.completed(c.id)
		ran, i := p.invocation(id).Started.Worker, p.invocation(c.id)
		if i.Previewed.Worker != ran || i.Started.Worker != ran || i.Previewed.Notes[0] != "the real diff" {
			t.Errorf("%s ran on %s, its follow-up was previewed by %s and run by %s", id, ran, i.Previewed.Worker, i.Started.Worker)
		}
	}
	p.settled(access.ToolDurable("second"))
	p.settled(access.PreviewDurable("second"))
	sum := 0
	for _, w := range at {
		sum += len(runs(t, filepath.Join(w.dir, "ledger")))
	}
	if sum != 2*n {
		t.Errorf("%d calls ran, want %d", sum, 2*n)
	}
}

// A worker that dies when its result is in the journal and not yet published asks
// for the follow-up all the same, once it is back.
func TestAFollowUpOutlivesItsWorker(t *testing.T) {
	p := newPlant(t, tokens...)
	worker := p.child("w1", t.TempDir(), faultEnv+"=result.durable")
	p.ask(call{id: "t1-0", tool: "count", params: `{"asks":true}`})
	if err := worker.cmd.Wait(); err == nil {
		t.Fatal("the worker ended by itself")
	}
	if s := p.invocation("t1-0").Status(); s != session.Started {
		t.Fatalf("the call is %s", s)
	}
	worker.start()
	if f := p.completed("t1-0").Receipt.FollowUp; f == nil || f.Tool != "second" || string(f.Parameters) != `{"asks":true}` {
		t.Errorf("the receipt asks for %s", jsonOf(f))
	}
}

// What a kernel lets run in the wrong way, a worker does not.
func TestRun_OutOfPlace_Rejected(t *testing.T) {
	p := newPlant(t, "first", "second", "count")
	w := p.start("w1", reviewing)
	p.ask(call{id: "t1-0", tool: "second", params: `{}`, tier: events.T2})
	p.ask(call{id: "t2-0-c", tool: "count", params: `{}`, tier: events.T2, after: "t2-0"})
	for id, want := range map[string]string{"t1-0": "only follows up", "t2-0-c": "not made to follow up"} {
		if e := p.rejected(id); !strings.Contains(e.Reason, want) {
			t.Errorf("end of %s is %s", id, jsonOf(e))
		}
	}
	if n := runs(t, filepath.Join(w.dir, "ledger")); len(n) != 0 {
		t.Errorf("ran %v", n)
	}
}
