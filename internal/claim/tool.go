package claim

import (
	"time"

	"correx/internal/session"
	"correx/pkg/events"
)

// ToolRules are the [Rules] of tool invocations.
type ToolRules struct {
	Worker    events.WorkerID
	Isolation events.Isolation // that a run gets here
	// Admit says why an approved invocation must not run here, or "". The
	// approval's signature, digest and end have been checked by then.
	Admit func(session.Invocation) string
}

// Fold implements [Rules]. State.Fold is a [session.Invocation].
func (ToolRules) Fold(recs []events.Record) State {
	i := session.FoldInvocation(recs)
	s := State{Phase: toolPhase(i.Status()), Ready: i.GrantedSeq, Started: i.StartedSeq, End: i.End, Last: i.LastSeq, Fold: i}
	if i.Granted != nil {
		s.Until = i.Granted.Until
	}
	if i.Started != nil {
		s.Claim = i.Started.Claim
	}
	if i.Cancel != nil {
		s.Cancel = i.Cancel.Reason
	}
	return s
}

func toolPhase(s session.ToolInvocationStatus) Phase {
	switch {
	case s.Ended():
		return Ended
	case s == session.Approved:
		return Ready
	case s == session.Started:
		return Running
	case s == session.CancelRequested:
		return Cancelling
	}
	return Waiting
}

// Check implements [Rules].
func (r ToolRules) Check(s State, now time.Time) events.Fact {
	i := s.Fold.(session.Invocation)
	reason := ""
	switch {
	case i.Granted.Digest != i.Digest(i.Granted.Policy):
		reason = "the approval is for another call than this one"
	case i.Granted.Tool != i.Requested.Request.Tool || i.Granted.Token != i.Requested.Token:
		reason = "the approval is for another tool than this one"
	case !now.Before(i.Granted.Until):
		reason = "the approval ended at " + i.Granted.Until.UTC().Format(time.RFC3339) + ", before a worker took the call"
	case i.Tier() >= events.T4:
		reason = "tier T4 never runs"
	case r.Admit != nil:
		reason = r.Admit(i)
	}
	if reason == "" {
		return nil
	}
	return events.ToolExecutionRejected{Ref: s.Aggregate.Ref(), Tier: i.Tier(), Reason: reason, Worker: r.Worker}
}

// Started implements [Rules].
func (r ToolRules) Started(s State, c events.Claim) events.Fact {
	return events.ToolExecutionStarted{Ref: s.Aggregate.Ref(), Claim: c, Isolation: r.Isolation}
}

// Failed implements [Rules].
func (ToolRules) Failed(s State, f Failure) events.Fact {
	return events.ToolExecutionFailed{
		Ref: s.Aggregate.Ref(), Fence: f.Fence, Reason: f.Reason, Recoverable: f.Recoverable, Effects: f.Effects,
	}
}
