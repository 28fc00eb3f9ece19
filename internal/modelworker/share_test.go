package modelworker_test

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"correx/internal/modelworker"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

// limit is how long an inference of these tests goes on, in tokens: long enough
// to be met at work.
const limit = 60

func (p *plant) endlessOnes(begun uint64, n int) (ids []string) {
	p.Helper()
	for k := range n {
		id := fmt.Sprintf("t%d", k+1)
		p.ask(events.InferenceRequested{Ref: ref("s1", id), Through: begun, Generation: events.GenerationConfig{MaxTokens: limit}}, endless)
		ids = append(ids, id)
	}
	return ids
}

// A model with slots does several inferences at once, and no more than it has.
func TestParallel(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1", func(o *modelworker.Options) { o.Models[1].Parallel = 3 })
	begun := p.begin("s1", "Go on for ever.")
	ids := p.endlessOnes(begun, 9)
	change := map[uint64]int{} // of how many are at work, by sequence
	for _, id := range ids {
		i := p.end("s1", id)
		if i.Failure == nil || i.Failure.Usage.Completion != limit || i.Started.Attempt != 1 || i.Alarms != 0 {
			t.Errorf("%s: %+v, %+v", id, i.Failure, i.Started)
		}
		change[i.StartedSeq], change[i.LastSeq] = 1, -1
	}
	now, most := 0, 0
	for _, seq := range slices.Sorted(maps.Keys(change)) {
		now += change[seq]
		most = max(most, now)
	}
	if most != 3 {
		t.Errorf("%d were at work at once, of 3 slots", most)
	}
	if n := len(modelFacts[events.ModelLoaded](p, w.id, endless)); n != 1 {
		t.Errorf("loaded %d times", n)
	}
}

// What one session asks for is answered in order, whatever goes on beside it.
func TestOrderOfASession(t *testing.T) {
	p := newPlant(t)
	p.start("m1", func(o *modelworker.Options) { o.Models[0].Parallel = 4 })
	const sessions, turns = 6, 4
	done := make(chan []uint64, sessions)
	for k := range sessions {
		id := events.SessionID(fmt.Sprintf("s%d", k+1))
		begun := p.begin(id, testmodel.Task("hello", "Say hi."))
		go func() {
			var ends []uint64
			for n := range turns { // as the kernel does: the next when the last has ended
				turn := fmt.Sprintf("t%d", n+1)
				p.ask(events.InferenceRequested{Ref: ref(id, turn), Through: begun, FinalOnly: true}, script)
				i := p.end(id, turn)
				ends = append(ends, i.StartedSeq, i.LastSeq)
			}
			done <- ends
		}()
	}
	for range sessions {
		ends := <-done
		for k := 1; k < len(ends); k++ {
			if ends[k] <= ends[k-1] {
				t.Errorf("out of order: %v", ends)
			}
		}
	}
	p.settled(script)
}

// Two workers with the same model share what is asked of it: both are at work at
// the same time, and nothing is done twice.
func TestTwoWorkersShare(t *testing.T) {
	p := newPlant(t)
	one, two := p.start("m1"), p.start("m2")
	begun := p.begin("s1", "Go on for ever.")
	ids := p.endlessOnes(begun, 8)
	by := map[events.WorkerID]int{}
	for _, id := range ids {
		i := p.end("s1", id)
		if i.Started.Attempt != 1 || i.Alarms != 0 || i.Failure == nil || i.Failure.Usage.Completion != limit {
			t.Errorf("%s: %+v, %+v", id, i.Failure, i.Started)
		}
		by[i.Started.Worker]++
	}
	if by[one.id] < 2 || by[two.id] < 2 || by[one.id]+by[two.id] != len(ids) {
		t.Errorf("done by %v", by)
	}
	p.settled(endless)
}

// All PERSISTENT models are loaded at the start, and stay whatever is asked for;
// one that crashes comes back by itself.
func TestPersistentModelsStay(t *testing.T) {
	p := newPlant(t)
	w := p.start("m1", func(o *modelworker.Options) {
		third := o.Models[0]
		third.ModelID, third.ResidencyMode = "third", events.Persistent
		broken := third
		broken.ModelID, broken.Path = "broken", filepath.Join(t.TempDir(), "nothing.gguf")
		o.Models[1].ResidencyMode = events.Persistent
		o.Models = append(o.Models[:1:1], broken, o.Models[1], third)
	})
	p.await("the loads", func() bool {
		return len(modelFacts[events.ModelLoaded](p, w.id, endless)) == 1 && len(modelFacts[events.ModelLoaded](p, w.id, "third")) == 1 &&
			len(modelFacts[events.ModelLoadFailed](p, w.id, "broken")) == 1
	})
	begun := p.begin("s1", testmodel.Task("hello", "Say hi."))
	p.ask(events.InferenceRequested{Ref: ref("s1", "t1"), Through: begun, FinalOnly: true}, script)
	p.completed("s1", "t1") // by the one that the others share
	for _, m := range []string{endless, "third"} {
		if n := len(modelFacts[events.ModelUnloaded](p, w.id, m)); n != 0 {
			t.Errorf("%s was unloaded", m)
		}
	}
	if err := syscall.Kill(modelFacts[events.ModelLoaded](p, w.id, "third")[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.await("it to come back", func() bool { return len(modelFacts[events.ModelLoaded](p, w.id, "third")) == 2 })
	if n := len(modelFacts[events.ModelCrashed](p, w.id, "third")); n != 1 {
		t.Errorf("crashed %d times", n)
	}
}

// A worker is killed while it loads, while it idles, and while it infers: no
// llama-server outlives it by two seconds, and what was asked has one end.
func TestKilledAtAnyTime(t *testing.T) {
	for _, when := range []string{"loading", "idle", "inference"} {
		t.Run(when, func(t *testing.T) {
			p := newPlant(t)
			worker := p.child("m1")
			begun := p.begin("s1", "Go on for ever.")
			p.endlessOnes(begun, 1)
			var pid int
			switch when {
			case "loading": // there is a process, and no fact about it yet
				p.await("the child", func() bool { pid = childOf(worker); return pid != 0 })
			case "idle":
				pid = p.running("t1", 1, "host-m1")
				p.end("s1", "t1")
			case "inference":
				pid = p.running("t1", 1, "host-m1")
			}
			killed := time.Now()
			if err := worker.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = worker.Wait()
			dead(p, pid)
			if took := time.Since(killed); took > 2*time.Second {
				t.Errorf("llama-server was there for %v", took)
			} else {
				t.Logf("llama-server was dead after %v", took)
			}
			p.start("m2")
			want := 2
			if when == "idle" {
				want = 1
			}
			i := p.end("s1", "t1")
			if i.Failure == nil || i.Failure.Usage.Completion != limit || i.Started.Attempt != want || i.Alarms != 0 {
				t.Errorf("ended with %+v after %+v, %d alarms", i.Failure, i.Started, i.Alarms)
			}
			p.settled(endless)
		})
	}
}

// childOf is the pid of a process that a worker started; 0: none yet.
func childOf(worker *exec.Cmd) int { return firstChild(worker.Process.Pid) }
