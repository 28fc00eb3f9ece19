package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/approval"
	"correx/internal/session"
	"correx/pkg/events"
)

// maxDecisions is the most decisions that one outside input may lead to.
const maxDecisions = 50

var (
	epoch  = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	stream = approval.StreamIdentity{Stream: "EVENTS", Created: epoch}
)

// kernelKey signs approvals; ed25519 gives the same signature every time.
func kernelKey() nkeys.KeyPair {
	kp, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, []byte("a seed of thirty-two bytes, fixed"[:32]))
	if err != nil {
		panic(err)
	}
	return kp
}

// errConflict is what the log answers to an append that came too late.
var errConflict = errors.New("conflict")

// A memLog is EVENTS in memory.
type memLog struct {
	recs []events.Record
	last map[events.Aggregate]uint64
	ver  *approval.Verifier
	key  nkeys.KeyPair
}

func newLog(t testing.TB) *memLog {
	t.Helper()
	kp := kernelKey()
	pub, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	v, err := approval.NewVerifier(stream, pub)
	if err != nil {
		t.Fatal(err)
	}
	return &memLog{last: map[events.Aggregate]uint64{}, ver: v, key: kp}
}

// clone returns a log with the first n records of l.
func (l *memLog) clone(n int) *memLog {
	c := &memLog{recs: slices.Clone(l.recs[:n]), last: map[events.Aggregate]uint64{}, ver: l.ver, key: l.key}
	for _, r := range c.recs {
		c.last[r.Aggregate] = r.Seq
	}
	return c
}

// read is a [session.Reader].
func (l *memLog) read(id events.SessionID, through uint64, fn func(events.Record) error) error {
	for _, r := range l.recs {
		if r.Seq > through || r.Aggregate.Session != id {
			continue
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

// put stores a message whatever it is, as the server would.
func (l *memLog) put(now time.Time, subject string, h events.Header, data []byte) events.Record {
	r := events.Decode(uint64(len(l.recs))+1, now, subject, h, data)
	if r.Err == nil {
		if err := l.ver.Verify(r); err != nil {
			r.Err, r.Fact = err, nil
		}
	}
	l.recs = append(l.recs, r)
	l.last[r.Aggregate] = r.Seq
	return r
}

// append is the conditional append; approvals are signed on the way, as the
// kernel does.
func (l *memLog) append(now time.Time, f events.Fact, after uint64) (events.Record, error) {
	if l.last[events.AggregateOf(f)] != after {
		return events.Record{}, fmt.Errorf("append %s after %d: %w", f.FactName(), after, errConflict)
	}
	if g, ok := f.(events.ApprovalGranted); ok {
		signed, err := approval.Sign(l.key, stream, g)
		if err != nil {
			return events.Record{}, err
		}
		f = signed
	}
	subject, h, data, err := events.Encode(f, events.Source{Name: "test"}, after, now)
	if err != nil {
		return events.Record{}, err
	}
	return l.put(now, subject, h, data), nil
}

// A sim is a kernel around a log in memory, with a clock that stands still
// unless it is told to go on. It does what internal/kernel does, one step after
// the other.
type sim struct {
	t       testing.TB
	log     *memLog
	now     time.Time
	world   session.World
	states  map[session.Key]session.State
	order   []session.Key
	said    map[events.CommandID]bool // commands that the log rejects
	folded  int                       // records
	wishes  []events.Wish
	pending []events.Wish
	noted   map[session.Key]string // what each key waits for, as printed last
	out     strings.Builder
	tokens  int  // of each inference
	printed int  // records
	amnesia bool // the kernel restarts before everything it does
}

func newSim(t testing.TB) *sim {
	s := &sim{t: t, log: newLog(t), now: epoch, noted: map[session.Key]string{}, tokens: 100}
	s.forget()
	return s
}

// forget is a restart of the kernel: all it knows is what the log says, and
// every command comes again.
func (s *sim) forget() {
	s.world, s.states, s.order, s.folded = session.World{}, map[session.Key]session.State{}, nil, 0
	s.said = map[events.CommandID]bool{}
	s.pending = slices.Clone(s.wishes)
}

func (s *sim) fold() {
	for _, r := range s.log.recs[s.folded:] {
		s.world = session.EvolveWorld(s.world, r)
		if k, ok := session.KeyOfRecord(r); ok {
			next, err := session.Continue(s.state(k), r, s.log.read)
			if err != nil {
				s.t.Fatal(err)
			}
			s.states[k] = next
		}
		if f, ok := r.Fact.(events.CommandRejected); ok {
			s.said[events.CommandID(f.ID)] = true
		}
		s.folded++
	}
}

func (s *sim) state(k session.Key) session.State {
	st, ok := s.states[k]
	if !ok {
		st = session.State{ID: k.Session}
		s.states[k] = st
		s.order = append(s.order, k)
	}
	return st
}

// settle lets the kernel decide until nothing is left to decide.
func (s *sim) settle() {
	s.t.Helper()
	for n := 0; ; {
		if s.amnesia {
			s.forget()
		}
		s.fold()
		made := s.step()
		if made == 0 {
			break
		}
		if n += made; n > maxDecisions {
			s.t.Fatalf("more than %d decisions without an outside input:\n%s", maxDecisions, s.print(len(s.log.recs)-maxDecisions))
		}
	}
	s.note()
}

// step makes what decisions there are on the state as it is.
func (s *sim) step() int {
	if s.command() {
		return 1
	}
	made := 0
	for _, k := range s.order {
		r := session.React(s.states[k], s.world, s.now)
		for _, d := range r.Decisions {
			if _, err := s.log.append(s.now, d.Fact, d.After); err != nil {
				s.t.Fatalf("decision of the only kernel: %v", err)
			}
			made++
		}
		if made > 0 {
			return made
		}
		if !r.Wake.IsZero() && !r.Wake.After(s.now) {
			s.t.Fatalf("%v wants to be woken at %s, which is past, and decides nothing (waits for %q)", k, s.offset(r.Wake), r.Waiting)
		}
	}
	return made
}

// command carries out or rejects one command, if one can be.
func (s *sim) command() bool {
	for n, w := range s.pending {
		key, _ := session.KeyOf(w)
		if _, done := s.state(key).Cites(w.ID); done || s.said[w.ID] {
			s.pending = slices.Delete(slices.Clone(s.pending), n, n+1)
			return s.command()
		}
		a := s.handle(key, w)
		if d := a.Decision; d != nil {
			if _, err := s.log.append(s.now, d.Fact, d.After); err != nil {
				s.t.Fatalf("command %s: %v", w.ID, err)
			}
			return true
		}
		if len(a.Reject) == 0 {
			continue
		}
		s.pending = slices.Delete(slices.Clone(s.pending), n, n+1)
		s.reject(w, a.Reject)
		return true
	}
	return false
}

func (s *sim) handle(key session.Key, w events.Wish) session.Answer {
	others := session.Others{Read: s.log.read, Last: func() (uint64, error) { return uint64(len(s.log.recs)), nil }}
	a, err := session.Handle(s.state(key), s.world, w, s.now, others)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// reject answers a command. A kernel that did not look for an earlier answer
// could carry out later what was rejected once.
func (s *sim) reject(w events.Wish, reasons []string) {
	_, err := s.log.append(s.now, events.CommandRejected{
		Ref:      events.Ref{Session: events.System, ID: string(w.ID)},
		Decision: events.Decision{DecidedAt: uint64(s.folded), Now: s.now, Command: w.ID, Actor: w.Actor},
		Subject:  w.Subject, Reasons: reasons,
	}, 0)
	if err != nil {
		s.t.Fatalf("reject %s: %v", w.ID, err)
	}
}

// wish publishes a command.
func (s *sim) wish(verb, body string) {
	s.t.Helper()
	n := uint64(len(s.wishes)) + 1
	w := events.DecodeCommand(events.CommandID(fmt.Sprintf("%d-k", n)), n, s.now, "cmd.operator."+verb, nil, []byte(body))
	if len(w.Faults) > 0 {
		s.t.Fatalf("command %s %s: %v", verb, body, w.Faults)
	}
	s.wishes, s.pending = append(s.wishes, w), append(s.pending, w)
	s.settle()
}

// report appends what a worker found, behind whatever is the last of its
// aggregate.
func (s *sim) report(f events.Fact) events.Record {
	s.t.Helper()
	r, err := s.log.append(s.now, f, s.log.last[events.AggregateOf(f)])
	if err != nil {
		s.t.Fatal(err)
	}
	s.settle()
	return r
}

// pass lets time go by, with a stop wherever somebody wants to be woken.
func (s *sim) pass(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); ; {
		at := s.wake()
		if at.IsZero() || at.After(end) {
			s.now = end
			s.settle()
			return
		}
		s.now = at
		s.settle()
	}
}

// wake is the earliest time at which something is to be looked at again.
func (s *sim) wake() (at time.Time) {
	earliest := func(t time.Time) {
		if !t.IsZero() && t.After(s.now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, k := range s.order {
		earliest(session.React(s.states[k], s.world, s.now).Wake)
	}
	for _, w := range s.pending {
		key, _ := session.KeyOf(w)
		earliest(s.handle(key, w).Wait)
	}
	return at
}
