package kernel

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"correx/internal/session"
	"correx/pkg/events"
)

// A key is one session, or one invocation or inference of no session, with what
// is to be done about it. Its fields below mu belong to the one goroutine that
// works on it; there is one while busy is set.
type key struct {
	id session.Key

	mu     sync.Mutex
	inbox  []events.Record
	wishes []*wish
	busy   bool
	nudged bool
	gone   bool // taken off the map; whoever holds it looks it up again

	state   session.State
	loaded  bool            // the state has all that the log had when the key was made
	own     uint64          // do not react before the fold has passed this
	mine    []uint64        // own records that the fold has not passed
	ahead   []events.Record // own records of a single aggregate that the fold has not passed
	pending []*wish         // commands not decided yet, in order
	refused conflict        // the latest refusal, to see one that nothing explains
	timer   *time.Timer
	failed  bool // reactions are off: the log refuses them for no reason
}

// mark asks for a nudge once the fold has passed seq.
type mark struct {
	seq uint64
	key *key
}

// lookup returns the key of id, made if need be.
func (k *Kernel) lookup(id session.Key, fresh bool) *key {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.keys[id]
	if e == nil {
		e = &key{id: id, state: session.State{ID: id.Session}, loaded: fresh || !k.live.Load()}
		k.keys[id] = e
	}
	return e
}

// give hands something to a key and sees that somebody works on it.
func (k *Kernel) give(id session.Key, fresh bool, put func(*key)) {
	for !k.giveTo(k.lookup(id, fresh), put) {
	}
}

// giveTo is give for a key in hand; it reports false if that is gone.
func (k *Kernel) giveTo(e *key, put func(*key)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return false
	}
	put(e)
	if !e.busy && k.live.Load() {
		e.busy = true
		k.work.Add(1)
		go k.run(e)
	}
	return true
}

// toKey hands a record to its key. Before the kernel is live there is nothing
// but folding, and nobody else: it is done at once.
func (k *Kernel) toKey(id session.Key, r events.Record) {
	if !k.live.Load() {
		e := k.lookup(id, true)
		e.state = k.next(e.state, r)
		if id.Kind != "" && k.rests(e) {
			k.drop(e)
		}
		return
	}
	k.give(id, opens(r), func(e *key) { e.inbox = append(e.inbox, r) })
}

// opens reports whether nothing of the key can be on the log before r.
func opens(r events.Record) bool {
	switch r.Fact.(type) {
	case events.ToolInvocationRequested:
		_, follows := session.Followed(events.ToolInvocationID(r.Aggregate.ID))
		return r.Aggregate.Session == events.System && !follows
	case events.SessionStarted, events.InferenceRequested:
		return r.Aggregate.Session == events.System || r.Aggregate.Kind == events.KindSession
	}
	return false
}

func (k *Kernel) nudge(e *key) {
	k.giveTo(e, func(e *key) { e.nudged = true })
}

func (k *Kernel) nudgeAll() {
	k.mu.Lock()
	all := make([]*key, 0, len(k.keys))
	for _, e := range k.keys {
		all = append(all, e)
	}
	k.mu.Unlock()
	for _, e := range all {
		k.nudge(e)
	}
}

// run works on a key until nothing is left to do.
func (k *Kernel) run(e *key) {
	defer k.work.Done()
	for k.ctx.Err() == nil {
		e.mu.Lock()
		recs, wishes := e.inbox, e.wishes
		if len(recs) == 0 && len(wishes) == 0 && !e.nudged {
			e.busy = false
			if k.rests(e) {
				k.dropLocked(e)
			}
			e.mu.Unlock()
			return
		}
		e.inbox, e.wishes, e.nudged = nil, nil, false
		e.mu.Unlock()
		e.pending = append(e.pending, wishes...)
		if !k.load(e) {
			return
		}
		for _, r := range recs {
			k.evolve(e, r)
		}
		k.step(e)
	}
}

// load folds what the log has of a key that was not in memory.
func (k *Kernel) load(e *key) bool {
	for !e.loaded {
		recs, err := k.read(e.id)
		if err == nil {
			for _, r := range recs {
				k.evolve(e, r)
			}
			e.loaded = true
			break
		}
		if !k.pause("read the log", err) {
			return false
		}
		e.state = session.State{ID: e.id.Session}
	}
	return true
}

// read returns what the log has of a key, in its order. What is read in several
// parts is read up to one sequence: what comes later, the follower brings.
func (k *Kernel) read(id session.Key) ([]events.Record, error) {
	through, err := k.Log.Last(k.ctx)
	if err != nil || through == 0 {
		return nil, err
	}
	var all []events.Record
	for _, filter := range id.Filters() {
		err := k.Log.Each(k.ctx, filter, 1, through, func(r events.Record) error {
			if of, ok := session.KeyOfRecord(r); ok && of == id {
				all = append(all, r)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b events.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return all, nil
}

func (k *Kernel) evolve(e *key, r events.Record) {
	if r.Seq <= e.state.Seq {
		return
	}
	alarms := len(e.state.Alarms)
	e.state = k.next(e.state, r)
	e.ahead = slices.DeleteFunc(e.ahead, func(a events.Record) bool { return a.Seq <= r.Seq })
	mine := slices.Contains(e.mine, r.Seq)
	e.mine = slices.DeleteFunc(e.mine, func(seq uint64) bool { return seq <= r.Seq })
	k.presumed(e, r)
	if len(e.state.Alarms) == alarms {
		return
	}
	a := e.state.Alarms[len(e.state.Alarms)-1]
	if r.Err == nil { // else fold has said so
		k.logger.Warn("alarm: record does not hold", "seq", a.Seq, "subject", a.Subject, "err", a.Reason)
	}
	if mine { // the same decision would be made, and accepted, for ever
		k.giveUp(e, "a decision of the kernel does not hold: "+a.Reason)
	}
}

// presumed raises an alarm for an end that asks for a follow-up which it may not
// have.
func (k *Kernel) presumed(e *key, r events.Record) {
	switch r.Fact.(type) {
	case events.ToolExecutionCompleted, events.ToolExecutionFailed:
	default:
		return
	}
	if i, _ := e.state.Tool(events.ToolInvocationID(r.Aggregate.ID)); i.EndSeq == r.Seq && i.Presumes() != nil {
		k.logger.Warn("alarm: follow-up is not opened", "seq", r.Seq, "subject", r.Subject, "err", i.Presumes())
	}
}

// pause waits a moment after an error of the server, and reports whether to go
// on.
func (k *Kernel) pause(what string, err error) bool {
	if k.ctx.Err() != nil {
		return false
	}
	k.logger.Warn(what+" again in a moment", "err", err)
	select {
	case <-k.ctx.Done():
		return false
	case <-time.After(100 * time.Millisecond):
		return true
	}
}

// nudgeBusy brings the goroutine that works on e around once more.
func (k *Kernel) nudgeBusy(e *key) {
	e.mu.Lock()
	e.nudged = true
	e.mu.Unlock()
}

// rests reports whether a key needs no memory: nothing is open, nobody waits.
// Only what belongs to no session is dropped while the kernel runs; it is read
// again if somebody refers to it.
func (k *Kernel) rests(e *key) bool {
	if e.id.Kind == "" || len(e.pending) > 0 {
		return false
	}
	return e.state.Rests() && e.state.Seq >= e.own && len(e.ahead) == 0
}

func (k *Kernel) drop(e *key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k.dropLocked(e)
}

func (k *Kernel) dropLocked(e *key) {
	e.gone = true
	if e.timer != nil {
		e.timer.Stop()
	}
	k.mu.Lock()
	delete(k.keys, e.id)
	k.mu.Unlock()
}

// passLater nudges e once the fold has passed seq.
func (k *Kernel) passLater(e *key, seq uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.marks = append(k.marks, mark{seq, e})
}

// pass is called after each record: it wakes who waited for it, and answers
// whose command it cites.
func (k *Kernel) pass(r events.Record) {
	var due []*key
	k.mu.Lock()
	k.marks = slices.DeleteFunc(k.marks, func(m mark) bool {
		if m.seq > r.Seq {
			return false
		}
		due = append(due, m.key)
		return true
	})
	k.mu.Unlock()
	for _, e := range due {
		k.nudge(e)
	}
	k.answer(r)
}
