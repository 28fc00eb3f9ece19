package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/session"
	"correx/internal/testenv"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

// longScript calls a tool some times, by a model that takes its time, so that a
// model-worker is met at work.
func longScript() testmodel.Script {
	var turns []string
	for range 3 {
		turns = append(turns, testmodel.Call("shell", `{"argv":["sleep","0"]}`))
	}
	return testmodel.Script{Tasks: map[string][]string{"long": append(turns, testmodel.Final("It is done."))}, Slow: true}
}

// elsewhere makes the state directory of a model-worker on another machine: the
// address, the keys that it needs, and a configuration of its own.
func (s *system) elsewhere(model string) (state string) {
	s.t.Helper()
	state = filepath.Join(s.dir, "elsewhere")
	if err := os.MkdirAll(filepath.Join(state, "keys"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	for _, f := range []string{"nats.url", "keys/model-worker.nk", "kernel.pub"} {
		b, err := os.ReadFile(filepath.Join(s.state, f))
		if err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, f), b, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	config := fmt.Sprintf(`
worker: {ack_wait: 300ms, drain: 5s}
models:
  - {name: %q, path: %q, context_size: %d, residency: PERSISTENT, capabilities: {CODING: 0.9}}
llama_server: {path: %q}
`, model, filepath.Join(s.dir, "scripted.gguf"), testmodel.ContextSize, testenv.LlamaServer(s.t))
	if err := os.WriteFile(filepath.Join(state, "correx.yaml"), []byte(config), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return state
}

func (s *system) begin(id events.SessionID, more string) {
	s.t.Helper()
	if a := s.api("session.start", fmt.Sprintf(`{"session":%q,"task":"take your time [task:long]","tools":["shell"]%s}`, id, more)); !a.OK {
		s.t.Fatalf("start %s: %+v", id, a)
	}
}

// The only model-worker is killed in the middle, and gets no chance to say so.
// Another, with a state directory of its own, brings the model back: what was
// being answered is answered by it, and the session comes to its end.
func TestAnotherModelWorkerTakesOver(t *testing.T) {
	s := newSystem(t, longScript())
	p := s.startParts()
	s.approveAll()
	s.begin("s1", `,"model":"test/scripted:1"`)
	s.await("s1", "an inference to be at work", func(st session.State) bool {
		n := len(st.Inferences)
		return n > 1 && st.Inferences[n-1].Status() == session.InferenceStarted
	})
	p["model-worker"].kill()
	s.start("model-worker", "--state", s.elsewhere("test/scripted:1"), "--name", "m2")
	st := s.await("s1", "its end", func(st session.State) bool { return st.Status != session.Running })
	if !completed(st) {
		t.Fatalf("%s: %+v", st.Status, st.Outcome)
	}
	workers := map[events.WorkerID]int{}
	for _, i := range st.Inferences {
		workers[i.Started.Worker]++
		if i.Requested.Routing == nil || i.Requested.Routing.Rule != events.RuleName {
			t.Errorf("%s was routed by %+v", i.ID, i.Requested.Routing)
		}
	}
	if len(workers) != 2 {
		t.Errorf("answered by %v, want both workers", workers)
	}
	s.oneEndEach(st)
}

// A session that names a capability waits for a model while there is none, with
// the reason where people look; then the best at it is asked, and the fact says
// why.
func TestRouteByCapability(t *testing.T) {
	s := newSystem(t, longScript())
	s.start("bus", "serve")
	s.events()
	s.start("tool-worker", "--name", "w1")
	s.approveAll()
	s.begin("s1", `,"capability":"CODING"`)
	for !strings.Contains(s.run("bus", "show", "s1"), "waits for a model-worker that offers a model for CODING, until ") {
		s.pause("the reason", s.ctx.Err())
	}
	// The one that is best comes first, so that the session cannot begin without it.
	s.start("model-worker", "--state", s.elsewhere("best"), "--name", "m2")
	s.await("s1", "its first inference", func(st session.State) bool { return len(st.Inferences) > 0 })
	s.start("model-worker", "--name", "m1")
	st := s.await("s1", "its end", func(st session.State) bool { return st.Status != session.Running })
	if !completed(st) {
		t.Fatalf("%s: %+v", st.Status, st.Outcome)
	}
	for k, i := range st.Inferences {
		if i.Requested.Model != "best" || i.Requested.Routing.Capability != events.Coding || i.Requested.Routing.Score != 0.9 {
			t.Errorf("%s went to %s by %+v", i.ID, i.Requested.Model, i.Requested.Routing)
		}
		if k == 0 && i.Requested.Routing.Rule != events.RuleOnly {
			t.Errorf("the first by %+v", i.Requested.Routing)
		}
	}
	// What names nothing goes to the best at anything: here the other.
	s.begin("s2", "")
	st = s.await("s2", "its end", func(st session.State) bool { return st.Status != session.Running })
	if r := st.Inferences[0].Requested; !completed(st) || r.Model != "test/scripted:1" || r.Routing.Rule != events.RuleScore || r.Routing.Among != 2 {
		t.Errorf("%s: %+v went to %s by %+v", st.Status, st.Outcome, r.Model, r.Routing)
	}
}
