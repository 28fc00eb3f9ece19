package session

import (
	"fmt"
	"time"

	"correx/pkg/events"
)

// A Decision is a fact that has to be appended behind the last record of its
// aggregate. If that is no longer the last, the decision is void.
type Decision struct {
	Fact  events.Fact
	After uint64
	Cause string // the command that led to it, or the end that asked for it
}

// A Reaction is what has to happen next in a session.
type Reaction struct {
	Decisions []Decision // at most one for each aggregate
	Wake      time.Time  // when to react again though nothing came; zero: never
	Waiting   string     // what the session waits for, for people; empty: nothing
}

// React says what has to happen next. It looks at what is, never at what came
// last, so that it can be called at any time, any number of times, by any number
// of kernels.
//
// The facts it returns record now and the sequence that was folded; approvals
// are not signed yet.
func React(s State, w World, now time.Time) Reaction {
	r := reactor{s: s, w: w, now: now}
	for _, i := range s.Tools {
		if i.Session == s.ID {
			r.invocation(i)
		}
	}
	for _, i := range s.Inferences {
		if i.Session == s.ID {
			r.inference(i)
		}
	}
	if s.ID != events.System && s.Status == Running {
		r.turn()
	}
	r.rules()
	return r.out
}

type reactor struct {
	s   State
	w   World
	now time.Time
	out Reaction
}

func (r *reactor) decide(f events.Fact, after uint64) {
	r.out.Decisions = append(r.out.Decisions, Decision{Fact: f, After: after})
}

func (r *reactor) decision() events.Decision {
	return events.Decision{DecidedAt: r.s.Seq, WorldAt: r.w.Seq, Now: r.now}
}

// wait asks to be called again at t, and says what for.
func (r *reactor) wait(t time.Time, format string, a ...any) {
	if r.out.Wake.IsZero() || t.Before(r.out.Wake) {
		r.out.Wake = t
	}
	if r.out.Waiting == "" {
		r.out.Waiting = fmt.Sprintf(format, a...)
	}
}

// over reports whether the session has ended, so that what it opened must end.
func (r *reactor) over() bool {
	switch r.s.Status {
	case SessionCompleted, SessionFailed, SessionCancelled:
		return true
	}
	return false
}

func (r *reactor) main(f events.Fact) { r.decide(f, r.s.MainSeq) }

func (r *reactor) ref() events.Ref { return events.Ref{Session: r.s.ID, ID: events.Main} }

func (r *reactor) fail(code events.FailureCode, format string, a ...any) {
	r.main(events.SessionFailed{Ref: r.ref(), Decision: r.decision(), Code: code, Reason: fmt.Sprintf(format, a...)})
}

// inference ends what no worker takes, and what a session that ended has open.
func (r *reactor) inference(i Inference) {
	switch {
	case i.status == "" || i.status.Ended():
	case r.over():
		r.failInference(i, events.FailCancelled, "the session ended")
	case i.status == InferenceRequested && !r.now.Before(i.Requested.Deadline):
		r.failInference(i, events.FailNobody, fmt.Sprintf("no model-worker took it before %s", i.Requested.Deadline.UTC().Format(time.RFC3339)))
	case i.status == InferenceRequested:
		r.wait(i.Requested.Deadline, "a model-worker to take inference %s", i.ID)
	default:
		if r.out.Waiting == "" {
			r.out.Waiting = fmt.Sprintf("inference %s on %s", i.ID, i.Started.Worker)
		}
	}
}

func (r *reactor) failInference(i Inference, code events.InferenceFailure, reason string) {
	r.decide(events.InferenceFailed{
		Ref: events.Ref{Session: r.s.ID, ID: string(i.ID)}, Decision: r.decision(),
		Fence: events.Fence{Started: i.StartedSeq}, Code: code, Reason: reason,
		Recoverable: code == events.FailNobody,
	}, i.LastSeq)
}

// rules remembers the answers that people gave for the whole session.
func (r *reactor) rules() {
	if r.s.ID == events.System || r.s.Status == "" || r.s.Status == SessionCancelled || r.mainTaken() {
		return
	}
	for _, i := range r.s.Tools {
		if i.Session != r.s.ID || i.Granted == nil || i.Granted.Scope != events.ScopeSession || i.Granted.By != "person" {
			continue
		}
		rule := ruleFor(i, r.w.Settings.RuleTTL)
		if !r.hasRule(rule, i.GrantedSeq) {
			actor := rule.Actor
			rule.Decision = r.decision()
			rule.Actor = actor
			rule.Ref = r.ref()
			r.main(rule)
			return
		}
	}
}

// mainTaken reports whether session.main has a decision already.
func (r *reactor) mainTaken() bool {
	for _, d := range r.out.Decisions {
		if d.Fact.FactName().Kind() == events.KindSession {
			return true
		}
	}
	return false
}

// hasRule reports whether an answer was remembered after it was given: whatever
// the settings have become since, it is not remembered anew.
func (r *reactor) hasRule(n events.ApprovalRuleGranted, granted uint64) bool {
	for _, o := range r.s.Rules {
		if o.Tool == n.Tool && o.Parameters == n.Parameters && o.MaxTier >= n.MaxTier && o.DecidedAt >= granted {
			return true
		}
	}
	return false
}
