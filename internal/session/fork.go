package session

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"correx/pkg/events"
)

// A fork is a session that begins with another's past: what was said, asked and
// done in it up to a sequence, and nothing that was permitted. None of it happens
// again. It is read from the log of the other, so that whoever folds a session
// that may be a fork uses [Read] or [Continue], not [Evolve] alone.

// A Reader hands over the records of one session up to a sequence, oldest first.
// It stops at the first error of fn, and returns it.
type Reader func(id events.SessionID, through uint64, fn func(events.Record) error) error

// Read folds a session as it was at sequence through, with its past if it is a
// fork. An error is read's.
func Read(read Reader, id events.SessionID, through uint64) (State, error) {
	s := State{ID: id}
	err := read(id, through, func(r events.Record) error {
		var err error
		s, err = Continue(s, r, read)
		return err
	})
	return s, err
}

// Continue is [Evolve]; at the first fact of a fork it reads its past. An error is
// read's, and then the State is as it was.
func Continue(s State, r events.Record, read Reader) (State, error) {
	f, ok := forkedBy(s, r)
	if !ok {
		return Evolve(s, r), nil
	}
	parent, err := Read(read, f.Session, f.At)
	if err != nil {
		return s, fmt.Errorf("read session %s up to %d, from which %s was forked: %w", f.Session, f.At, s.ID, err)
	}
	return Evolve(Inherit(s, parent), r), nil
}

// forkedBy returns what a record forks s from, if it does.
func forkedBy(s State, r events.Record) (events.Fork, bool) {
	f, ok := r.Fact.(events.SessionStarted)
	if r.Err != nil || !ok || f.ForkOf == nil || s.Status != "" || r.Aggregate.Kind != events.KindSession || !forkHolds(*f.ForkOf, r) {
		return events.Fork{}, false
	}
	return *f.ForkOf, true
}

// forkHolds reports whether a fork shares what came before it, so that no chain
// of forks goes on for ever.
func forkHolds(f events.Fork, r events.Record) bool {
	return f.At > 0 && f.At < r.Seq && f.Session != events.System && f.Session != r.Aggregate.Session
}

// Inherit returns s, a fork of which the log has no fact that holds, with the past
// of parent. Remembered answers stay behind, as do records that do not hold.
func Inherit(s, parent State) State {
	own := s
	s.Messages = slices.Clone(parent.Messages)
	s.Inferences, s.Tools = nil, nil
	for _, i := range parent.Inferences {
		if i.status != "" {
			s.Inferences = append(s.Inferences, i)
		}
	}
	for _, i := range parent.Tools {
		if i.status != "" {
			s.Tools = append(s.Tools, i)
		}
	}
	for _, i := range own.Inferences { // strangers' records, which are the last of their aggregates
		if s.inference(string(i.ID)) < 0 {
			s.Inferences = append(s.Inferences, i)
		}
	}
	for _, i := range own.Tools {
		if s.tool(string(i.ID)) < 0 {
			s.Tools = append(s.Tools, i)
		}
	}
	return s
}

// past says why a record of an inference or invocation does not hold whose id the
// past of a fork has.
func past(of events.SessionID, r events.Record) error {
	if of == r.Aggregate.Session {
		return nil
	}
	return fmt.Errorf("%s is of the past that was shared with session %s", r.Aggregate.ID, of)
}

// UnderWay says what of a session has begun and not ended, so that it cannot be
// forked there; empty: nothing.
func (s State) UnderWay() string {
	for _, i := range s.Inferences {
		if i.status != "" && !i.status.Ended() {
			return fmt.Sprintf("inference %s is %s", i.ID, i.status)
		}
	}
	for _, i := range s.Tools {
		switch {
		case i.status != "" && !i.status.Ended():
			return fmt.Sprintf("invocation %s is %s", i.ID, i.status)
		case s.FollowUpDue(i):
			return fmt.Sprintf("the follow-up of %s is due", i.ID)
		}
	}
	if s.Status != Running && s.Status != Paused || len(s.Inferences) == 0 {
		return ""
	}
	r := reactor{s: s}
	last, ok := r.last()
	if !ok || last.Done == nil {
		return ""
	}
	for n := range last.Done.Reply.Calls {
		if id := callID(last.ID, n); s.tool(string(id)) < 0 || s.Tools[s.tool(string(id))].status == "" {
			return fmt.Sprintf("invocation %s, which the model asked for, is not opened yet", id)
		}
	}
	return ""
}

// Others is what a command may look at beside its own key: sessions as they were,
// which no later record can change.
type Others struct {
	Read Reader
	Last func() (uint64, error) // sequence of the log's last record
}

// A forkPoint is a session as it was where somebody wants to fork it.
type forkPoint struct {
	State
	before uint64 // the last sequence up to there at which it can be forked; 0: none
	end    uint64 // the last sequence of the log
}

// at reads a session up to the sequence at.
func (o Others) at(id events.SessionID, at uint64) (p forkPoint, err error) {
	p.State = State{ID: id}
	if p.end, err = o.Last(); err != nil || at > p.end {
		return p, err
	}
	err = o.Read(id, at, func(r events.Record) error {
		s, err := Continue(p.State, r, o.Read)
		if err != nil {
			return err
		}
		p.State = s
		if s.Status != "" && s.UnderWay() == "" {
			p.before = r.Seq
		}
		return nil
	})
	return p, err
}

// fork opens h's session, which should not be there, with the past of another.
func (h handler) fork(b events.SessionFork, others Others) (Answer, error) {
	from, err := others.at(b.Session, b.At)
	if err != nil {
		return Answer{}, fmt.Errorf("read session %s, which is to be forked at %d: %w", b.Session, b.At, err)
	}
	key, _ := KeyOf(h.c)
	switch busy := from.UnderWay(); {
	case h.s.Status != "":
		return h.reject("session %q exists; choose another id, or none to be given one", key.Session), nil
	case b.At > from.end:
		return h.reject("EVENTS ends at sequence %d; session %q cannot be forked at %d", from.end, b.Session, b.At), nil
	case from.Status == "":
		return h.reject("session %q had not begun at sequence %d, or does not exist", b.Session, b.At), nil
	case busy != "":
		return h.reject("session %q cannot be forked at %d: %s; fork it %s", b.Session, b.At, busy, instead(from.before)), nil
	}
	return h.main(forked(b, *from.Started, events.SessionStarted{Ref: h.ref(key.Session), Decision: h.decision()})), nil
}

func instead(seq uint64) string {
	if seq == 0 {
		return "where it has ended"
	}
	return fmt.Sprintf("at %d, or where it has ended", seq)
}

// forked fills in the first fact of a fork: what the command names, else what the
// other session has.
func forked(b events.SessionFork, old events.SessionStarted, f events.SessionStarted) events.SessionStarted {
	f.ForkOf, f.Say = &events.Fork{Session: b.Session, At: b.At}, b.Say
	f.Task, f.System, f.Mode = cmp.Or(b.Task, old.Task), cmp.Or(b.System, old.System), cmp.Or(b.Mode, old.Mode)
	f.Model, f.Capability = b.Model, b.Capability
	if b.Model == "" && b.Capability == "" {
		f.Model, f.Capability = old.Model, old.Capability
	}
	if f.Tools = b.Tools; len(b.Tools) == 0 {
		f.Tools = old.Tools
	}
	f.Limits = events.Limits{
		Turns: cmp.Or(b.Limits.Turns, old.Limits.Turns), ToolCalls: cmp.Or(b.Limits.ToolCalls, old.Limits.ToolCalls),
		Tokens: cmp.Or(b.Limits.Tokens, old.Limits.Tokens), WallTime: cmp.Or(b.Limits.WallTime, old.Limits.WallTime),
	}
	if f.Generation = b.Generation; reflect.ValueOf(b.Generation).IsZero() {
		f.Generation = old.Generation
	}
	return f
}
