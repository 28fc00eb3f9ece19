package claim

import (
	"sync"

	"correx/pkg/events"
)

// A Question asks a worker whether it holds something, on
// [events.RunningSubject].
type Question struct {
	Session events.SessionID `json:"session"`
	Kind    events.Kind      `json:"kind"`
	ID      string           `json:"id"`
	Started uint64           `json:"started"` // F
}

// An Answer is a worker's word on a [Question].
type Answer struct {
	Worker  events.WorkerID `json:"worker"`
	Boot    string          `json:"boot"`
	Running bool            `json:"running"`
}

// registry is what this process works on. An aggregate is in it from before its
// started is appended until its end is on the log, or it is given up.
type registry struct {
	mu   sync.Mutex
	held map[events.Aggregate]*hold
}

// A hold is one entry of the registry.
type hold struct {
	mu       sync.Mutex
	claiming bool   // started may be on the log without our knowing
	started  uint64 // F; 0: not yet known
	fenced   bool
	poked    bool
	poke     func() // set while the work runs
}

// take registers a; false: it is held already.
func (r *registry) take(a events.Aggregate) (*hold, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[a] != nil {
		return nil, false
	}
	h := &hold{}
	r.held[a] = h
	return h, true
}

func (r *registry) get(a events.Aggregate) *hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held[a]
}

func (r *registry) drop(a events.Aggregate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, a)
}

func (r *registry) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held)
}

// claims says that a started is about to be appended.
func (h *hold) claims() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claiming, h.started = true, 0
}

// yields says that no started of ours can be on its way any more.
func (h *hold) yields() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claiming = false
}

// owns says that the started at f is ours.
func (h *hold) owns(f uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claiming, h.started = false, f
}

// fence says that it is ours no longer.
func (h *hold) fence() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fenced = true
}

// runs answers for the claim at f. While our own started may be on its way the
// answer is yes, whichever claim is meant.
func (h *hold) runs(f uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.fenced && (h.claiming || h.started != 0 && h.started == f)
}

// ring wakes whoever follows the log for this hold, now or as soon as somebody
// does.
func (h *hold) ring() {
	h.mu.Lock()
	h.poked = true
	poke := h.poke
	h.mu.Unlock()
	if poke != nil {
		poke()
	}
}

// onRing has f called at each ring, and at once if one came before.
func (h *hold) onRing(f func()) {
	h.mu.Lock()
	h.poke = f
	before := h.poked
	h.mu.Unlock()
	if f != nil && before {
		f()
	}
}
