package claim

import (
	"time"

	"correx/pkg/events"
)

// A Phase is how far an aggregate has come, as the protocol sees it.
type Phase uint8

const (
	Waiting    Phase = iota // nothing that a worker may take on
	Ready                   // the record State.Ready may be claimed
	Running                 // State.Claim holds
	Cancelling              // it holds, and a cancel was asked for
	Ended                   // an end holds
)

func (p Phase) String() string {
	switch p {
	case Ready:
		return "ready"
	case Running:
		return "running"
	case Cancelling:
		return "cancelling"
	case Ended:
		return "ended"
	}
	return "waiting"
}

// A State is the fold of an aggregate. Only records that hold count, except for
// Last.
type State struct {
	Aggregate events.Aggregate
	Phase     Phase
	Ready     uint64       // sequence of the record that permits a claim, once there is one
	Until     time.Time    // a started that is stored later is void; zero: no end
	Claim     events.Claim // of the latest started
	Started   uint64       // F: its sequence; 0: none
	Cancel    string       // why a cancel was asked for
	End       events.Fact  // nil until Ended
	Last      uint64       // sequence of the last record, whatever it is
	Fold      any          // what Rules.Fold made of it, for the rules' own use

	partial   bool // read only as far as the delivery itself
	records   []events.Record
	startedID string // of a started that is not in records
}

// fence ties an end to the latest claim, written by whoever made that claim.
func (s State) fence() events.Fence {
	return events.Fence{Started: s.Started, Nonce: s.Claim.Nonce}
}

// owned reports whether the claim f is the latest, and nothing has ended it.
func (s State) owned(f events.Fence) bool {
	return (s.Phase == Running || s.Phase == Cancelling) && s.fence() == f
}

// endedBy reports whether the end on the log is the one that f's owner wrote.
func (s State) endedBy(f events.Fence) bool {
	got, ok := fenceOf(s.End)
	return ok && got == f
}

// recoveredBy reports whether f's owner has said what became of its files.
func (s State) recoveredBy(f events.Fence) bool {
	for _, r := range s.records {
		if e, ok := r.Fact.(events.Recovered); ok && r.Err == nil && e.Fence == f {
			return true
		}
	}
	return false
}

// cause returns the id of the record at seq, for the envelope of what follows.
func (s State) cause(seq uint64) string {
	if seq == s.Started && s.startedID != "" {
		return s.startedID
	}
	for _, r := range s.records {
		if r.Seq == seq {
			return r.Header.Get(events.HeaderID)
		}
	}
	return ""
}

// fenceOf returns the fence of a fact that has one.
func fenceOf(f events.Fact) (events.Fence, bool) {
	switch e := f.(type) {
	case events.ToolExecutionCompleted:
		return e.Fence, true
	case events.ToolExecutionFailed:
		return e.Fence, true
	case events.InferenceCompleted:
		return e.Fence, true
	case events.InferenceFailed:
		return e.Fence, true
	case events.Recovered:
		return e.Fence, true
	}
	return events.Fence{}, false
}
