package toolworker_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"correx/internal/access"
	"correx/internal/session"
	"correx/pkg/events"
	"correx/pkg/sandbox"
)

// rollback are the points that only a run gets to that is taken back.
var rollback = []string{"rolling", "rolling.durable", "rolled", "rolled.durable"}

// TestDeathAtEveryPointOfTheJournal kills the worker at each point at which its
// journal has just written something, or is about to, and starts it again: there
// is one end, and the file is what it says.
func TestDeathAtEveryPointOfTheJournal(t *testing.T) {
	p := newPlant(t, tokens...)
	for n, point := range sandbox.FaultPoints {
		if strings.HasPrefix(point, "announced") {
			continue // of a commit that comes after its run: see package sandbox
		}
		t.Run(point, func(t *testing.T) {
			p := *p
			p.TB = t
			d := death{&p, t.TempDir(), "died-" + events.Token(point), point}
			if slices.Contains(rollback, point) {
				d.happens(n, d.call("scribble", map[string]string{"path": d.path(), "fail": "as asked"}))
			} else {
				d.happens(n, d.call("file_write", map[string]string{"operation": "write", "path": d.path(), "content": d.id}))
			}
		})
	}
}

// A death is one call during which its worker dies.
type death struct {
	*plant
	dir, id, point string
}

func (d death) path() string { return filepath.Join(d.dir, "files", d.id) }

func (d death) call(tool string, params map[string]string) call {
	b, err := json.Marshal(params)
	if err != nil {
		d.Fatal(err)
	}
	return call{id: d.id, tool: tool, params: string(b), tier: events.T2}
}

func (d death) happens(n int, c call) {
	d.Helper()
	worker := d.child("w"+string(rune('a'+n)), d.dir, faultEnv+"="+d.point)
	d.request(c)
	if c.tool == "file_write" {
		d.await("a preview", func() bool { return d.invocation(d.id).Previewed != nil })
	}
	d.approve(c)
	died := make(chan struct{})
	go func() {
		defer close(died)
		_ = worker.cmd.Wait()
	}()
	select {
	case <-died:
	case <-d.ctx.Done():
		d.Fatalf("the worker does not die at %s; the call is %s", d.point, d.invocation(d.id).Status())
	}
	worker.start()
	d.end(d.id)
	d.settled(access.ToolDurable(c.tool))
	d.judge()
	if err := worker.stop(); err != nil {
		d.Error(err)
	}
}

func (d death) judge() {
	d.Helper()
	i := d.invocation(d.id)
	if i.Alarms != 0 {
		d.Errorf("%d records do not hold", i.Alarms)
	}
	_, err := os.Stat(d.path())
	if there := err == nil; there != (i.Status() == session.Completed) {
		d.Errorf("%s, and its file is there: %v (%s)", i.Status(), there, jsonOf(i.End))
	}
	f, failed := i.End.(events.ToolExecutionFailed)
	fails := slices.Index(sandbox.FaultPoints, d.point) < slices.Index(sandbox.FaultPoints, "result.durable") ||
		slices.Contains(rollback, d.point)
	if failed != fails {
		d.Errorf("death at %s ends it as %s", d.point, i.Status())
	}
	if failed && f.Effects != events.EffectsNone && f.Effects != events.EffectsRolledBack {
		d.Errorf("effects are %s", f.Effects)
	}
}
