package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"correx/internal/session"
	"correx/pkg/events"
)

// at is a kernel that has folded the first n records of l, at a time of its own.
func at(t testing.TB, l *memLog, n int, now time.Time) *sim {
	s := newSim(t)
	s.log, s.now = l.clone(n), now
	s.fold()
	return s
}

// decisionOf returns how a record was decided, when a kernel decided it of its
// own accord.
func decisionOf(r events.Record) (events.Decision, bool) {
	d, ok := r.Fact.(interface{ Decided() events.Decision })
	if !ok || d.Decided().Now.IsZero() || d.Decided().Command != "" {
		return events.Decision{}, false
	}
	return d.Decided(), true
}

// reaction is what React answers for the key of a record.
func (s *sim) reaction(r events.Record) session.Reaction {
	k, _ := session.KeyOfRecord(r)
	return session.React(s.state(k), s.world, s.now)
}

// among reports whether a decision makes exactly the record r, signature apart.
func among(t testing.TB, l *memLog, decisions []session.Decision, r events.Record, blur ...string) bool {
	t.Helper()
	for _, d := range decisions {
		c := l.clone(int(r.Seq) - 1)
		got, err := c.append(r.Time, d.Fact, d.After)
		if err == nil && got.Subject == r.Subject && bytes.Equal(without(got.Data, blur), without(r.Data, blur)) {
			return true
		}
	}
	return false
}

// without drops fields of a body.
func without(body []byte, fields []string) []byte {
	if len(fields) == 0 {
		return body
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil {
		return body
	}
	for _, f := range fields {
		delete(m, f)
	}
	out, _ := json.Marshal(m) // ordered by key
	return out
}

// Fold any prefix, react, and the continuation is the same: whoever has the log
// can check every decision again.
func TestReactOnAnyPrefixContinuesAsRecorded(t *testing.T) {
	checked := 0
	goldens(t, func(t *testing.T, _ string, a *txtar.Archive) {
		l := play(t, a, false).log
		for n, r := range l.recs {
			d, ok := decisionOf(r)
			if !ok {
				continue
			}
			checked++
			// As far as it says that it had folded: byte for byte.
			if got := decidedOn(l, r, d); !among(t, l, got, r) {
				t.Errorf("#%d %s %s\n is not what React decides on what it says: %s", r.Seq, r.Subject, r.Data, texts(got))
			}
			// And on all that stood before it, which may be other decisions of
			// the same moment.
			s := at(t, l, n, d.Now)
			if got := s.reaction(r).Decisions; !among(t, l, got, r, "decided_at", "world_at", "through") {
				t.Errorf("#%d %s\n is not what React decides on all that stood before it: %s", r.Seq, r.Subject, texts(got))
			}
		}
	})
	if checked < 300 {
		t.Errorf("only %d decisions were checked", checked)
	}
}

// decidedOn is what React answers to exactly what a decision says that it rests
// on: its session's records up to one sequence, the system's up to another.
func decidedOn(l *memLog, r events.Record, d events.Decision) []session.Decision {
	key, _ := session.KeyOfRecord(r)
	s, w := session.State{ID: key.Session}, session.World{}
	for _, old := range l.recs {
		if k, ok := session.KeyOfRecord(old); ok && k == key && old.Seq <= d.DecidedAt {
			s, _ = session.Continue(s, old, l.read) // memory gives no errors
		}
		if old.Seq <= d.WorldAt {
			w = session.EvolveWorld(w, old)
		}
	}
	return session.React(s, w, d.Now).Decisions
}

func texts(decisions []session.Decision) string {
	var b strings.Builder
	for _, d := range decisions {
		body, _ := json.Marshal(d.Fact)
		b.WriteString("\n  " + string(d.Fact.FactName()) + " " + string(body))
	}
	return b.String()
}

// What was recorded last is all that was decided: at the end of a log React has
// nothing left to say.
func TestReactRestsAtTheEndOfALog(t *testing.T) {
	goldens(t, func(t *testing.T, _ string, a *txtar.Archive) {
		s := play(t, a, false)
		for _, k := range s.order {
			if r := session.React(s.states[k], s.world, s.now); len(r.Decisions) > 0 {
				t.Errorf("%v: %s", k, texts(r.Decisions))
			}
		}
	})
}

// Two kernels at different prefixes never write a contradiction: what one
// decides on less than the other has read is refused, or holds, and the session
// comes to rest all the same.
func TestStaleDecisionsAreRefusedOrHold(t *testing.T) {
	refused, accepted := 0, 0
	goldens(t, func(t *testing.T, _ string, a *txtar.Archive) {
		l := play(t, a, false).log
		for p := 1; p < len(l.recs); p++ {
			for _, fast := range []time.Duration{0, time.Minute, 10 * time.Minute, 2 * time.Hour} {
				r, a := staleAt(t, l, p, l.recs[p-1].Time.Add(fast))
				refused, accepted = refused+r, accepted+a
			}
		}
	})
	if refused == 0 || accepted == 0 {
		t.Errorf("%d refused, %d accepted: the test shows nothing", refused, accepted)
	}
	t.Logf("%d refused, %d accepted", refused, accepted)
}

// staleAt offers what a kernel decides on the first p records, by a clock that
// may be fast, to all that came later.
func staleAt(t *testing.T, l *memLog, p int, now time.Time) (refused, accepted int) {
	t.Helper()
	stale := at(t, l, p, now)
	for _, k := range stale.order {
		for _, d := range session.React(stale.states[k], stale.world, now).Decisions {
			for q := p + 1; q <= len(l.recs); q++ {
				c, ok := offerAt(t, l, q, d)
				if !ok {
					refused++
					continue
				}
				accepted++
				holdsAndRests(t, q, c)
			}
		}
	}
	return refused, accepted
}

// offerAt appends a stale decision to the first q records.
func offerAt(t *testing.T, l *memLog, q int, d session.Decision) (*memLog, bool) {
	t.Helper()
	c := l.clone(q)
	_, err := c.append(l.recs[q-1].Time, d.Fact, d.After)
	switch {
	case errors.Is(err, errConflict):
		return nil, false
	case err != nil:
		t.Fatal(err)
	}
	return c, true
}

// holdsAndRests checks that the last record of c, which a stale kernel put
// there, holds, and that its session ends when it is told to.
func holdsAndRests(t *testing.T, q int, c *memLog) {
	t.Helper()
	last := c.recs[q]
	s := at(t, c, q+1, last.Time)
	k, _ := session.KeyOfRecord(last)
	for _, a := range s.state(k).Alarms {
		if a.Seq == last.Seq {
			t.Errorf("stale %s after #%d is an alarm: %s", last.Subject, q, a.Reason)
		}
	}
	s.settle()
	s.rest(k)
}

// rest cancels a session, ends what its workers have in hand, and checks that
// nothing is open then.
func (s *sim) rest(k session.Key) {
	s.t.Helper()
	if k.Kind == "" && s.states[k].Status != "" && s.states[k].Status != session.SessionCancelled {
		s.wishes = append(s.wishes, events.Wish{ID: "cancel", Actor: "operator", Verb: "session.cancel", Subject: "cmd.operator.session.cancel",
			Time: s.now, Command: events.SessionCancel{Session: k.Session}})
		s.pending = append(s.pending, s.wishes[len(s.wishes)-1])
		s.settle()
	}
	for _, i := range s.states[k].Tools {
		if st := i.Status(); st == session.Started || st == session.CancelRequested {
			s.report(events.ToolExecutionFailed{Ref: events.Ref{Session: i.Session, ID: string(i.ID)},
				Fence: events.Fence{Started: i.StartedSeq, Nonce: i.Started.Nonce}, Reason: "cancelled", Effects: events.EffectsNone})
		}
	}
	if k.Kind == "" && s.states[k].Status == "" {
		return
	}
	if k.Kind != "" {
		s.pass(48 * time.Hour) // what belongs to no session ends at its deadlines
	}
	s.atRest(k)
}

// atRest checks that whatever a session asked for has exactly one end.
func (s *sim) atRest(k session.Key) {
	s.t.Helper()
	st := s.states[k]
	for _, i := range st.Tools {
		if i.Status() != "" && !i.Status().Ended() {
			s.t.Errorf("invocation %s is %s after its session was cancelled", i.ID, i.Status())
		}
	}
	for _, i := range st.Inferences {
		if started := i.Status() == session.InferenceStarted && k.Kind != ""; i.Status() != "" && !i.Status().Ended() && !started {
			s.t.Errorf("inference %s is %s after its session was cancelled", i.ID, i.Status())
		}
	}
	if r := session.React(st, s.world, s.now); len(r.Decisions) > 0 || k.Kind == "" && !r.Wake.IsZero() {
		s.t.Errorf("not at rest: %d decisions, wake at %s, waits for %q", len(r.Decisions), s.offset(r.Wake), r.Waiting)
	}
	s.oneEndEach(k)
}

// oneEndEach counts the ends that hold of each aggregate.
func (s *sim) oneEndEach(k session.Key) {
	s.t.Helper()
	ends := map[events.Aggregate]int{}
	alarms := map[uint64]bool{}
	for _, a := range s.states[k].Alarms {
		alarms[a.Seq] = true
	}
	for _, r := range s.log.recs {
		switch r.Fact.(type) {
		case events.ToolExecutionCompleted, events.ToolExecutionFailed, events.ToolExecutionRejected, events.InferenceCompleted, events.InferenceFailed:
			if of, _ := session.KeyOfRecord(r); of == k && !alarms[r.Seq] {
				ends[r.Aggregate]++
			}
		}
	}
	for a, n := range ends {
		if n != 1 {
			s.t.Errorf("%s has %d ends", a, n)
		}
	}
}

// A kernel that is restarted before everything it does, and told every command
// again, writes the same log.
func TestRestartedKernelWritesTheSameLog(t *testing.T) {
	goldens(t, func(t *testing.T, _ string, a *txtar.Archive) {
		want, got := play(t, a, false), play(t, a, true)
		if w, g := want.out.String(), got.out.String(); w != g {
			t.Errorf("log differs:\n%s", diff(w, g))
		}
		if len(want.log.recs) != len(got.log.recs) {
			t.Fatalf("%d records, were %d", len(got.log.recs), len(want.log.recs))
		}
		for k := range want.log.recs {
			w, g := want.log.recs[k], got.log.recs[k]
			if w.Subject != g.Subject || !bytes.Equal(w.Data, g.Data) || !reflect.DeepEqual(w.Header, g.Header) {
				t.Errorf("#%d is %s %s, was %s %s", w.Seq, g.Subject, g.Data, w.Subject, w.Data)
			}
		}
	})
}

// Folding step by step and from scratch is the same, and no later record changes
// an older State, nor one that went another way from it.
func TestEvolveIsPure(t *testing.T) {
	goldens(t, func(t *testing.T, _ string, a *txtar.Archive) { evolvesPurely(t, play(t, a, false).log) })
}

func evolvesPurely(t testing.TB, l *memLog) {
	t.Helper()
	type seen struct {
		state session.State
		text  string
	}
	last, older := map[session.Key]session.State{}, []seen{}
	for _, r := range l.recs {
		k, ok := session.KeyOfRecord(r)
		if !ok {
			continue
		}
		s, ok := last[k]
		if !ok {
			s.ID = k.Session
		}
		last[k] = session.Evolve(s, r)
		if r.Seq%5 == 0 {
			// Another future of the same State, and the State itself.
			fork := session.Evolve(last[k], aside(k, r.Seq))
			older = append(older, seen{fork, dump(fork)}, seen{last[k], dump(last[k])})
		}
	}
	for _, o := range older {
		if dump(o.state) != o.text {
			t.Fatalf("a later record changed the State at #%d", o.state.Seq)
		}
	}
	for k, s := range last {
		again := session.State{ID: k.Session}
		for _, r := range l.recs {
			if of, ok := session.KeyOfRecord(r); ok && of == k {
				again = session.Evolve(again, r)
			}
		}
		if !reflect.DeepEqual(s, again) {
			t.Fatalf("%v: folded from scratch it is another State", k)
		}
	}
}

// aside is a record that no log has: each time of another kind, so that each
// list of a State is appended to.
func aside(k session.Key, seq uint64) events.Record {
	d := events.Decision{Command: events.CommandID("aside"), Now: epoch}
	main := events.Ref{Session: k.Session, ID: events.Main}
	all := []events.Fact{
		events.MessageAdded{Ref: main, Decision: d, Role: events.RoleUser, Text: "aside"},
		events.ApprovalRuleGranted{Ref: main, Decision: d, Tool: "aside"},
		events.ToolInvocationRequested{Ref: events.Ref{Session: k.Session, ID: "aside"}, Decision: d},
		events.InferenceRequested{Ref: events.Ref{Session: k.Session, ID: "aside"}, Decision: d},
		events.ToolExecutionStarted{Ref: events.Ref{Session: k.Session, ID: "nobody"}},
	}
	f := all[(seq/5)%uint64(len(all))]
	return events.Record{Seq: seq + 1, Time: epoch, Subject: "aside", Aggregate: events.AggregateOf(f), Fact: f}
}

// dump is a deep copy of a State in text.
func dump(s session.State) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	for _, i := range s.Tools {
		text = append(text, string(i.Status())...)
	}
	for _, i := range s.Inferences {
		text = append(text, string(i.Status())...)
	}
	return string(text)
}
