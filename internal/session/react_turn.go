package session

import (
	"fmt"
	"regexp"
	"time"

	"correx/pkg/events"
)

// turn moves a running session on: it ends it, opens what the model asked for,
// or asks the model.
func (r *reactor) turn() {
	a, lim := r.s.Active, r.limits()
	if !a.Clock.IsZero() && lim.WallTime > 0 {
		if end := a.Clock.Add(lim.WallTime); !r.now.Before(end) {
			r.fail(events.FailLimit, "wall time of %s is over; resume the session to give it as much again", lim.WallTime)
			return
		} else {
			defer r.wait(end, "the model")
		}
	}
	last, ok := r.last()
	switch {
	case ok && last.Done != nil && r.openCalls(last, lim), r.busy():
	case !ok:
		r.next(lim)
	case last.Failure != nil:
		r.retry(last)
	case last.Done.Reply.Final != nil && !r.saidSince(last.Requested.Through):
		r.main(events.SessionCompleted{Ref: r.ref(), Decision: r.decision(), Inference: last.ID})
	default:
		r.next(lim)
	}
}

// busy reports whether something that a turn waits for is still open.
func (r *reactor) busy() bool {
	for _, i := range r.s.Inferences {
		if i.status != "" && !i.status.Ended() {
			return true
		}
	}
	for _, i := range r.s.Tools {
		if i.status != "" && !i.status.Ended() || r.s.FollowUpDue(i) {
			return true
		}
	}
	return false
}

// last returns the latest inference of this activation.
func (r *reactor) last() (Inference, bool) {
	for k := len(r.s.Inferences) - 1; k >= r.s.Active.Inferences; k-- {
		if r.s.Inferences[k].status != "" {
			return r.s.Inferences[k], true
		}
	}
	return Inference{}, false
}

// openCalls requests the calls of a reply that were not requested yet, or none
// of them when the limit does not allow all.
func (r *reactor) openCalls(i Inference, lim events.Limits) bool {
	var open []Decision
	for n, c := range i.Done.Reply.Calls {
		id := callID(i.ID, n)
		inv, known := r.s.Tool(id)
		if known && inv.status != "" {
			continue
		}
		open = append(open, Decision{Fact: r.request(id, events.ToolRequest{
			Invocation: id, Session: r.s.ID, Stage: i.Requested.Stage, Tool: c.Tool, Parameters: c.Arguments,
		}, events.T0, r.decision()), After: inv.LastSeq})
	}
	if lim.ToolCalls > 0 && len(open) > 0 && r.s.Active.ToolCalls+len(open) > lim.ToolCalls {
		r.fail(events.FailLimit, "limit of %d tool calls is reached; resume the session to give it as many again", lim.ToolCalls)
		return true
	}
	r.out.Decisions = append(r.out.Decisions, open...)
	return len(open) > 0
}

// callID names the nth call of an inference.
func callID(i events.InferenceID, n int) events.ToolInvocationID {
	return events.ToolInvocationID(fmt.Sprintf("%s-%d", i, n))
}

// callIDs are the ids that callID gives, which nobody else may give.
var callIDs = regexp.MustCompile(`^t[0-9]+-[0-9]+$`)

// reserved says why an actor may not name an invocation so.
func reserved(session events.SessionID, id events.ToolInvocationID) string {
	_, follows := Followed(id)
	switch {
	case session != events.System && callIDs.MatchString(string(id)):
		return "is named like a call of the model"
	case follows:
		return "is named like a follow-up"
	case events.CheckToken(string(FollowUpID(id))) != nil:
		return "has so long a name that its follow-up has no room"
	}
	return ""
}

// request makes the fact that opens an invocation. The tier is the offer's,
// unless the request raises it.
func (r *reactor) request(id events.ToolInvocationID, q events.ToolRequest, tier events.Tier, d events.Decision) events.ToolInvocationRequested {
	f := events.ToolInvocationRequested{
		Ref: events.Ref{Session: q.Session, ID: string(id)}, Decision: d,
		Request: q, Tier: tier, Token: events.Token(q.Tool),
	}
	if o, ok := r.w.Tool(q.Tool); ok {
		f.Tier, f.Token, f.Offer = max(tier, o.What.Tier), o.What.Token, o.What.Digest
		if o.What.Previews && f.Tier >= events.T2 {
			f.PreviewBy = r.now.Add(r.w.Settings.PreviewWait)
		}
	}
	return f
}

// saidSince reports whether people said something that the model has not read.
func (r *reactor) saidSince(through uint64) bool {
	n := len(r.s.Messages)
	return n > 0 && r.s.Messages[n-1].Seq > through
}

// retry asks again with another seed, as often as the settings allow.
func (r *reactor) retry(failed Inference) {
	n := r.failures()
	if !failed.Failure.Recoverable || n > r.w.Settings.Retries {
		r.fail(events.FailInference, "%s: %s", failed.Failure.Code, failed.Failure.Reason)
		return
	}
	again := *failed.Requested
	again.Generation.Seed += int64(n)
	if failed.Failure.Code == events.FailModelOutput {
		// At temperature 0 no seed changes anything.
		again.Generation.Temperature = max(again.Generation.Temperature, retryTemperature)
	}
	again.Retry = failed.ID
	r.infer(again)
}

// retryTemperature is what an answer that was of no use is asked for again with,
// at least.
const retryTemperature = 0.3

// failures counts the failed inferences since the last one that was none.
func (r *reactor) failures() int {
	n := 0
	for k := len(r.s.Inferences) - 1; k >= r.s.Active.Inferences; k-- {
		switch i := r.s.Inferences[k]; {
		case i.status == "": // a stranger's record, no more
		case i.Failure == nil:
			return n
		default:
			n++
		}
	}
	return n
}

// next begins the next turn, or ends a session that must not have one.
func (r *reactor) next(lim events.Limits) {
	a := r.s.Active
	stage := events.StageID(fmt.Sprintf("turn-%d", r.turnsEver()+1))
	entered := a.Stage != "" && r.unanswered()
	if entered {
		stage = a.Stage
	}
	switch rep := r.repetition(); {
	case lim.Turns > 0 && a.Turns >= lim.Turns && !entered:
		r.fail(events.FailLimit, "limit of %d turns is reached; resume the session to give it as many again", lim.Turns)
	case lim.Tokens > 0 && a.Tokens >= lim.Tokens:
		r.fail(events.FailLimit, "limit of %d tokens is reached (%d used); resume the session to give it as many again", lim.Tokens, a.Tokens)
	case r.w.Settings.Stop > 0 && rep.count >= r.w.Settings.Stop:
		r.fail(events.FailRepetition, "the model called %s %d times with the same arguments and the same result; say something to help it on", rep.tool, rep.count)
	case !r.ready():
	case !entered:
		r.main(events.StageEntered{Ref: r.ref(), Decision: r.decision(), Stage: stage})
	default:
		r.ask(stage, lim, rep)
	}
}

// turnsEver counts the turns of all activations.
func (r *reactor) turnsEver() int {
	seen := map[events.StageID]bool{}
	for _, i := range r.s.Inferences {
		if i.Requested != nil {
			seen[i.Requested.Stage] = true
		}
	}
	return len(seen)
}

// unanswered reports whether the latest stage has no inference yet.
func (r *reactor) unanswered() bool {
	for _, i := range r.s.Inferences {
		if i.Requested != nil && i.RequestedSeq > r.s.Active.StageSeq {
			return false
		}
	}
	return true
}

// ready reports whether the model and all the tools that the session names are
// offered; if not, it waits, or fails the session when it has waited enough.
func (r *reactor) ready() bool {
	missing := ""
	if q := r.want(); !r.w.offersModel(q) {
		missing = "a model-worker that offers " + q.String()
	}
	for _, t := range r.toolsWanted() {
		if _, ok := r.w.Tool(t); !ok && missing == "" {
			missing = "a tool-worker that offers " + t
		}
	}
	if missing == "" {
		return true
	}
	until := r.idleSince().Add(r.w.Settings.OfferWait)
	if !r.now.Before(until) {
		r.fail(events.FailWaiting, "waited until %s for %s; start one, then resume the session", stamp(until), missing)
		return false
	}
	r.wait(until, "%s", missing)
	return false
}

// idleSince is when the session last did something: the wait for an offer counts
// from there.
func (r *reactor) idleSince() time.Time {
	at := r.s.Active.At
	if i, ok := r.last(); ok {
		at = later(at, i.EndedAt)
	}
	for _, i := range r.s.Tools {
		at = later(at, i.EndedAt)
	}
	return at
}
