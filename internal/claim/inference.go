package claim

import (
	"time"

	"correx/internal/session"
	"correx/pkg/events"
)

// InferenceRules are the [Rules] of inferences. An inference is idempotent and
// keeps no journal, so its [Job] has Idempotent set and no Journal.
type InferenceRules struct {
	// Admit returns the end of an inference that this worker cannot do at all,
	// or nil.
	Admit func(session.Inference) events.Fact
}

// Fold implements [Rules]. State.Fold is a [session.Inference].
func (InferenceRules) Fold(recs []events.Record) State {
	i := session.FoldInference(recs)
	s := State{Phase: Waiting, Ready: i.RequestedSeq, Started: i.StartedSeq, End: i.End(), Last: i.LastSeq, Fold: i}
	switch st := i.Status(); {
	case st.Ended():
		s.Phase = Ended
	case st == session.InferenceRequested:
		s.Phase = Ready
	case st == session.InferenceStarted:
		s.Phase = Running
	}
	if i.Started != nil {
		s.Claim = i.Started.Claim
	}
	return s
}

// Check implements [Rules].
func (r InferenceRules) Check(s State, _ time.Time) events.Fact {
	if r.Admit == nil {
		return nil
	}
	return r.Admit(s.Fold.(session.Inference))
}

// Started implements [Rules].
func (InferenceRules) Started(s State, c events.Claim) events.Fact {
	return events.InferenceStarted{Ref: s.Aggregate.Ref(), Claim: c}
}

// Failed implements [Rules].
func (InferenceRules) Failed(s State, f Failure) events.Fact {
	code := events.FailServer
	if f.Why == WorkerLost || f.Why == Restarted {
		code = events.FailWorkerLost
	}
	return events.InferenceFailed{
		Ref: s.Aggregate.Ref(), Fence: f.Fence, Code: code, Reason: f.Reason, Recoverable: true,
	}
}
