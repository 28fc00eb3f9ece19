package kernel

import (
	"errors"
	"time"

	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// A conflict is a decision that the log refused.
type conflict struct {
	aggregate events.Aggregate
	after     uint64
	fact      events.FactName
}

// step decides what can be decided now. It returns early when the state must
// see a record first; that record brings the key back here.
func (k *Kernel) step(e *key) {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
	if e.state.Seq < e.own {
		return
	}
	if !k.carryOut(e) || e.failed {
		return
	}
	reaction := session.React(e.view(), *k.world.Load(), k.Clock())
	for _, d := range reaction.Decisions {
		if !k.append(e, d) {
			return
		}
	}
	k.wakeAt(e, reaction.Wake)
}

// append appends one decision. It reports whether to go on deciding on the same
// state.
func (k *Kernel) append(e *key, d session.Decision) bool {
	f := d.Fact
	if g, ok := f.(events.ApprovalGranted); ok {
		f = k.signer.Sign(k.identity, g)
	}
	seq, err := k.Log.Append(k.ctx, f, d.After, d.Cause)
	switch {
	case err == nil:
		k.appended(e, f, seq)
		return true
	case errors.Is(err, eventlog.ErrConflict):
		return k.conflict(e, conflict{events.AggregateOf(f), d.After, f.FactName()})
	case errors.Is(err, events.ErrTooLarge), errors.Is(err, eventlog.ErrDenied):
		k.logger.Error("decision cannot be appended", "fact", f.FactName(), "key", e.id, "err", err)
		k.giveUp(e, err.Error())
		return false
	}
	if k.pause("append "+string(f.FactName()), err) {
		k.nudgeBusy(e)
	}
	return false
}

// appended notes that the log has a decision. A session waits until the fold
// has passed it, for others may have appended to other aggregates before. Of a
// single aggregate the condition of the append proves that nothing came between,
// so that the key can go on at once.
func (k *Kernel) appended(e *key, f events.Fact, seq uint64) {
	e.mine = append(e.mine, seq)
	if e.id.Kind == "" {
		e.own = max(e.own, seq)
		return
	}
	e.ahead = append(e.ahead, events.Record{Seq: seq, Time: k.Clock(), Aggregate: events.AggregateOf(f), Fact: f})
	k.nudgeBusy(e)
}

// view is the state with what the key has appended itself.
func (e *key) view() session.State {
	s := e.state
	for _, r := range e.ahead {
		s = session.Evolve(s, r)
	}
	return s
}

// conflict is called when the log refused a decision. Somebody else appended:
// the follower brings it, and the key decides again. If there is nothing new to
// read, twice, the key is given up.
func (k *Kernel) conflict(e *key, c conflict) bool {
	recs, err := k.Log.Read(k.ctx, c.aggregate)
	if err != nil {
		if k.pause("read "+c.aggregate.String(), err) {
			k.nudgeBusy(e)
		}
		return false
	}
	last := uint64(0)
	if n := len(recs); n > 0 {
		last = recs[n-1].Seq
	}
	if last > c.after {
		if last > e.view().Seq {
			k.awaitRecord(e, last)
		} else {
			// The state knows the record and still decided on an older one.
			k.logger.Error("decision rests on an old record", "aggregate", c.aggregate.String(), "after", c.after, "last", last)
			k.giveUp(e, "a decision rests on an old record")
		}
		return false
	}
	if e.refused == c {
		k.giveUp(e, "the log refuses "+string(c.fact)+" though nothing has happened meanwhile")
		return false
	}
	e.refused = c
	k.nudgeBusy(e)
	return false
}

// awaitRecord holds the key until its state has the record seq: the follower
// brings it, or it has passed already, before the key was in memory.
func (k *Kernel) awaitRecord(e *key, seq uint64) {
	e.own = max(e.own, seq)
	passed := k.folded.Load() >= seq
	e.mu.Lock()
	defer e.mu.Unlock()
	if passed && len(e.inbox) == 0 {
		e.loaded, e.state, e.ahead, e.nudged = false, session.State{ID: e.id.Session}, nil, true
	}
}

// giveUp stops reacting for a key, and says so on the log where that is
// possible: nothing loops, nothing hangs.
func (k *Kernel) giveUp(e *key, reason string) {
	e.failed = true
	k.logger.Error("key is given up", "key", e.id, "reason", reason)
	if e.id.Kind != "" || e.state.Status != session.Running {
		return
	}
	_, err := k.Log.Append(k.ctx, events.SessionFailed{
		Ref:      events.Ref{Session: e.id.Session, ID: events.Main},
		Decision: events.Decision{DecidedAt: e.state.Seq, Now: k.Clock()},
		Code:     events.FailConflict, Reason: reason,
	}, e.state.MainSeq, "")
	if err != nil {
		k.logger.Error("session cannot be failed", "key", e.id, "err", err)
	}
}

// wakeAt sees that the key is looked at again at t.
func (k *Kernel) wakeAt(e *key, t time.Time) {
	for _, w := range e.pending {
		if !w.wake.IsZero() && (t.IsZero() || w.wake.Before(t)) {
			t = w.wake
		}
	}
	if !t.IsZero() {
		e.timer = time.AfterFunc(max(0, t.Sub(k.Clock())), func() { k.nudge(e) })
	}
}
