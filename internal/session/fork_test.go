package session_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"correx/internal/session"
	"correx/internal/testenv"
	"correx/pkg/events"
)

// Wherever a session of the golden logs can be forked, the fork knows what the
// session knew there, opens nothing that was opened before, and gets on.
func TestForkAnyGoldenAnywhere(t *testing.T) {
	forked, refused := 0, 0
	goldens(t, func(t *testing.T, path string, a *txtar.Archive) {
		l := play(t, a, false).log
		for n := len(path) % 3; n < len(l.recs); n += 3 { // together they have every place in a turn
			s := at(t, l, len(l.recs), epoch.Add(100))
			if s.states[s1].Started == nil || len(s.world.Tools()) == 0 {
				return
			}
			if forkAt(s, "s1", "f1", uint64(n+1)) {
				forked++
			} else {
				refused++
			}
		}
	})
	if forked < 100 || refused < 100 {
		t.Errorf("forked %d, refused %d: too few", forked, refused)
	}
}

// The same of random sessions, and of the forks themselves.
func TestForkRandomSessions(t *testing.T) {
	seed, forked, again := testenv.Seed(t), 0, 0
	for n := range 60 {
		c := chaos{sim: newSim(t), rng: rand.New(rand.NewPCG(seed, uint64(n))), strange: map[uint64]bool{}, lagged: map[uint64]bool{}}
		c.run()
		if c.states[s1].Started == nil {
			continue
		}
		c.settings()
		c.offer(everything)
		c.offer([]string{"m1", "model:m"})
		for k := range 10 {
			id := events.SessionID(fmt.Sprintf("f%d", k))
			if !forkAt(c.sim, "s1", id, uint64(1+c.rng.IntN(len(c.log.recs)))) {
				continue
			}
			forked++
			if forkAt(c.sim, id, id+"-b", uint64(len(c.log.recs))) {
				again++
			}
		}
		if t.Failed() {
			t.Fatalf("session %d of CORREX_SEED=%d:\n%s", n, seed, c.print(0))
		}
	}
	if forked < 50 || again < 20 {
		t.Errorf("forked %d, forked again %d: too few", forked, again)
	}
}

// forkAt forks a session, plays a turn of the fork, and checks both. It reports
// whether the fork was allowed.
func forkAt(s *sim, of, id events.SessionID, seq uint64) bool {
	s.t.Helper()
	was, err := session.Read(s.log.read, of, seq)
	if err != nil {
		s.t.Fatal(err)
	}
	before, parent := len(s.log.recs), dump(s.states[session.Key{Session: of}])
	s.wish("session.fork", fmt.Sprintf(`{"session":%q,"at":%d,"new":%q,"say":"well then"}`, of, seq, id))
	key := session.Key{Session: id}
	child := s.states[key]
	allowed := was.Status != "" && was.UnderWay() == ""
	if allowed != (child.Started != nil) {
		s.t.Fatalf("fork of %s at %d: allowed is %v (%s), started is %v", of, seq, allowed, was.UnderWay(), child.Started != nil)
	}
	if !allowed {
		return false
	}
	if got := dump(s.states[session.Key{Session: of}]); got != parent {
		s.t.Errorf("the fork of %s changed it", of)
	}
	had := sharesPast(s.t, was, child)
	playTurn(s, id)
	for _, r := range s.log.recs[before:] {
		if a := r.Aggregate; a.Session == id && a.Kind != events.KindSession && had[string(a.Kind)+"."+a.ID] {
			s.t.Errorf("#%d %s: the fork of %s at %d does again what was done", r.Seq, r.Subject, of, seq)
		}
	}
	if n := len(s.states[key].Alarms); n > 0 {
		s.t.Errorf("the fork of %s at %d has alarms: %+v", of, seq, s.states[key].Alarms)
	}
	packsPast(s, was, s.states[key])
	return true
}

// sharesPast checks that a fork has all that a session had, and returns it.
func sharesPast(t testing.TB, was, child session.State) map[string]bool {
	t.Helper()
	had := map[string]bool{}
	for _, i := range was.Inferences {
		if i.Status() != "" {
			had["inference."+string(i.ID)] = true
			if got, ok := child.Inference(i.ID); !ok || got.EndSeq != i.EndSeq {
				t.Errorf("inference %s of the past is not in the fork", i.ID)
			}
		}
	}
	for _, i := range was.Tools {
		if i.Status() != "" {
			had["tool."+string(i.ID)] = true
			if got, ok := child.Tool(i.ID); !ok || got.EndSeq != i.EndSeq || got.Status() != i.Status() {
				t.Errorf("invocation %s of the past is not in the fork", i.ID)
			}
		}
	}
	if n := len(was.Messages); len(child.Messages) != n+1 || child.Messages[n].Text != "well then" {
		t.Errorf("the fork has %d messages, the past %d", len(child.Messages), n)
	}
	if len(child.Rules) > 0 || len(child.Cited) != 1 {
		t.Errorf("the fork has %d remembered answers, and carries out %d commands", len(child.Rules), len(child.Cited))
	}
	return had
}

// playTurn answers what a fork asks for: one call, then the end.
func playTurn(s *sim, id events.SessionID) {
	key := session.Key{Session: id}
	for range 3 {
		for _, i := range s.states[key].Inferences {
			if ref := (events.Ref{Session: id, ID: string(i.ID)}); i.Session == id && i.Status() == session.InferenceRequested {
				s.infer(ref, "start", "")
				s.infer(ref, "call", `echo {"text":"`+string(i.ID)+`"}`)
			}
		}
		for _, i := range s.states[key].Tools {
			if ref := (events.Ref{Session: id, ID: string(i.ID)}); i.Session == id && i.Status() == session.Approved {
				s.tool(ref, "start", "")
				s.tool(ref, "done", "well done")
			}
		}
	}
}

// packsPast checks that the fork's first prompt tells what came of the past.
func packsPast(s *sim, was, child session.State) {
	for _, i := range child.Inferences {
		if i.Session != child.ID || i.Requested == nil {
			continue
		}
		p, err := session.Pack(child, nil, *i.Requested, session.Room{Window: 1 << 30, Count: func([]events.ChatMessage) int { return 1 }})
		if err != nil {
			s.t.Fatal(err)
		}
		text := ""
		for _, m := range p.Messages {
			text += m.Content + "\n"
		}
		for _, old := range was.Inferences {
			if old.Done != nil && !strings.Contains(text, old.Done.Reply.Text) {
				s.t.Errorf("the prompt of %s/%s does not have what %s said", child.ID, i.ID, old.ID)
			}
		}
		if !strings.Contains(text, "well then") {
			s.t.Errorf("the prompt of %s/%s does not have what was said to the fork", child.ID, i.ID)
		}
	}
}
