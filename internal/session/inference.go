package session

import (
	"fmt"
	"time"

	"correx/pkg/events"
)

// An InferenceStatus is where an inference stands.
type InferenceStatus string

const (
	InferenceRequested InferenceStatus = "REQUESTED"
	InferenceStarted   InferenceStatus = "STARTED"
	InferenceCompleted InferenceStatus = "COMPLETED"
	InferenceFailed    InferenceStatus = "FAILED"
)

// Ended reports whether nothing may follow.
func (s InferenceStatus) Ended() bool { return s == InferenceCompleted || s == InferenceFailed }

var inferenceMayFollow = map[InferenceStatus]string{
	"":                 "requested",
	InferenceRequested: "started failed",
	InferenceStarted:   "started completed failed",
}

// An Inference is the fold of one inference aggregate. The zero value is one
// that nobody asked for.
type Inference struct {
	Session events.SessionID
	ID      events.InferenceID

	Requested    *events.InferenceRequested
	RequestedSeq uint64
	RequestedAt  time.Time
	Started      *events.InferenceStarted // the latest that holds
	StartedSeq   uint64                   // the fencing token F
	StartedAt    time.Time
	Done         *events.InferenceCompleted
	Failure      *events.InferenceFailed
	EndSeq       uint64
	EndedAt      time.Time

	LastSeq  uint64
	LastHeld uint64
	Alarms   int

	status InferenceStatus
}

// Status says where the inference stands; it is empty for the zero value.
func (i Inference) Status() InferenceStatus { return i.status }

// End returns the fact that ended the inference, or nil.
func (i Inference) End() events.Fact {
	switch {
	case i.Done != nil:
		return *i.Done
	case i.Failure != nil:
		return *i.Failure
	}
	return nil
}

// FoldInference folds the records of one aggregate, oldest first.
func FoldInference(recs []events.Record) Inference {
	var i Inference
	for _, r := range recs {
		i, _ = i.Step(r)
	}
	return i
}

// Step folds one more record, as [Invocation.Step] does.
func (i Inference) Step(r events.Record) (Inference, error) {
	i.LastSeq = r.Seq
	f, err := held(r)
	if err == nil {
		err = i.allowed(f, r.Err == nil)
	}
	if err != nil {
		i.Alarms++
		return i, err
	}
	i.LastHeld = r.Seq
	switch f := f.(type) {
	case events.InferenceRequested:
		i.Session, i.ID = f.Session, events.InferenceID(f.ID)
		i.Requested, i.RequestedSeq, i.RequestedAt, i.status = &f, r.Seq, r.Time, InferenceRequested
	case events.InferenceStarted:
		i.Started, i.StartedSeq, i.StartedAt, i.status = &f, r.Seq, r.Time, InferenceStarted
	case events.InferenceCompleted:
		i.Done, i.EndSeq, i.EndedAt, i.status = &f, r.Seq, r.Time, InferenceCompleted
	case events.InferenceFailed:
		i.Failure, i.EndSeq, i.EndedAt, i.status = &f, r.Seq, r.Time, InferenceFailed
	}
	return i, nil
}

func (i Inference) allowed(f events.Fact, readable bool) error {
	token := f.FactName().Token()
	if !contains(inferenceMayFollow[i.status], token) {
		return fmt.Errorf("%s may not follow %s", token, orNothing(string(i.status)))
	}
	switch f := f.(type) {
	case events.InferenceStarted:
		want := 1
		if i.Started != nil {
			want = i.Started.Attempt + 1
		}
		if f.Attempt != want {
			return fmt.Errorf("started with attempt %d, expected %d", f.Attempt, want)
		}
	case events.InferenceCompleted:
		if f.Started != i.StartedSeq || f.Nonce != i.Started.Nonce {
			return fmt.Errorf("end of the claim at %d, the latest is at %d", f.Started, i.StartedSeq)
		}
	case events.InferenceFailed:
		if readable && (f.Started != i.StartedSeq || f.Nonce != "" && (i.Started == nil || f.Nonce != i.Started.Nonce)) {
			return fmt.Errorf("end of the claim at %d, the latest is at %d", f.Started, i.StartedSeq)
		}
	}
	return nil
}
