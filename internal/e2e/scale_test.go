package e2e

import (
	"fmt"
	"sync"
	"testing"

	"correx/internal/session"
	"correx/pkg/events"

	"correx/internal/testmodel"
)

func TestScaleOut(t *testing.T) {
	const workers, calls = 4, 400
	s := newSystem(t, testmodel.Script{Default: []string{testmodel.Final("idle")}})
	s.start("bus", "serve")
	s.events()
	for n := range workers {
		s.start("tool-worker", "--name", fmt.Sprintf("w%d", n+1))
	}
	s.approveAll()
	if a := s.api("session.start", `{"session":"many","task":"none","tools":["never"]}`); !a.OK {
		t.Fatalf("start: %+v", a)
	}
	ids := make([]string, calls)
	var work sync.WaitGroup
	slots := make(chan struct{}, 64)
	for n := range calls {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			ids[n] = fmt.Sprintf("call-%d", n)
			a := s.api("tool.request", fmt.Sprintf(`{"tool":"echo","parameters":{"text":"call %d"},"session":"many","invocation":%q}`, n, ids[n]))
			if !a.OK {
				t.Errorf("call %d: %+v", n, a)
			}
		})
	}
	work.Wait()
	st := s.await("many", "all calls", func(st session.State) bool {
		done := 0
		for _, i := range st.Tools {
			if i.Status().Ended() {
				done++
			}
		}
		return done == calls
	})
	used := map[events.WorkerID]int{}
	for n, id := range ids {
		i, ok := st.Tool(events.ToolInvocationID(id))
		if !ok || i.Status() != session.Completed || i.Started.Attempt != 1 {
			t.Fatalf("call %d: %s", n, i.Status())
		}
		if got, want := i.Receipt().Output, fmt.Sprintf("call %d", n); got != want {
			t.Errorf("call %d answered %q, want %q", n, got, want)
		}
		used[i.Started.Worker]++
	}
	s.oneEndEach(st)
	if len(used) != workers {
		t.Errorf("workers used: %v, want all %d", used, workers)
	}
	t.Logf("calls by worker: %v", used)
}
