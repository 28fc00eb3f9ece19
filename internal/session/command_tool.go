package session

import (
	"fmt"

	"correx/pkg/events"
)

// invocation finds what a command refers to. What is not there yet is waited
// for: until the session ends, or the command's own time is over.
func (h handler) invocation(session events.SessionID, id events.ToolInvocationID) (Invocation, Answer, bool) {
	if session != "" && session != events.System {
		if h.s.Status == "" {
			return Invocation{}, h.reject("session %q does not exist", session), false
		}
	}
	i, _ := h.s.Tool(id)
	if i.Status() != "" {
		return i, Answer{}, true
	}
	switch h.s.Status {
	case SessionCompleted, SessionFailed, SessionCancelled:
		return i, h.reject("session %q is %s and has no invocation %q", session, h.s.Status, id), false
	}
	until := h.c.Time.Add(h.w.Settings.CommandWait)
	if h.now.Before(until) {
		return i, Answer{Wait: until, Why: "invocation " + string(id) + " to be requested"}, false
	}
	return i, h.reject("there is no invocation %q; waited for it until %s", id, stamp(until)), false
}

func (h handler) approve(b events.ToolApprove) Answer {
	i, a, ok := h.invocation(b.Session, b.Invocation)
	if !ok {
		return a
	}
	switch i.Status() {
	case Requested, Previewed:
		// The question may still be asked; then the digest decides.
		until := later(h.c.Time, i.RequestedAt).Add(h.w.Settings.OfferWait + h.w.Settings.PreviewWait + h.w.Settings.CommandWait)
		if h.now.Before(until) {
			return Answer{Wait: until, Why: "the question about " + string(b.Invocation) + " to be asked"}
		}
		return h.reject("invocation %q was not asked about before %s", b.Invocation, stamp(until))
	case ApprovalRequested:
	case Approved:
		return h.reject("invocation %q is approved already, by %s", b.Invocation, i.Granted.By)
	default:
		return h.reject("invocation %q does not wait for an approval: it is %s%s%s", b.Invocation, i.Status(), because(i.why()), h.review(i))
	}
	if b.Scope == events.ScopeSession && i.Follows() != "" {
		return h.reject("invocation %q is the review of %s, and no answer to a review holds for another; approve it once", b.Invocation, i.Follows())
	}
	if b.Digest != i.Asked.Digest {
		return h.reject("digest is %q, the question about %q is for %q; look at what is asked and approve that", short(b.Digest), b.Invocation, i.Asked.Digest)
	}
	if !h.now.Before(i.Asked.Deadline) {
		return h.reject("the question about %q ended at %s", b.Invocation, stamp(i.Asked.Deadline))
	}
	r := reactor{s: h.s, w: h.w, now: h.now}
	if v := r.verdict(i, i.Asked.Tier); v.Effect == events.Deny {
		return h.reject("invocation %q is not allowed any more: %s", b.Invocation, v.Why)
	}
	scope := b.Scope
	if scope == "" {
		scope = events.ScopeOnce
	}
	return h.decide(events.ApprovalGranted{
		Ref: toolRef(i), Decision: h.decision(), Token: i.Requested.Token, Tool: i.Requested.Request.Tool,
		Tier: i.Asked.Tier, Digest: i.Asked.Digest, Policy: i.Asked.Policy, By: "person", Scope: scope, Reason: b.Reason,
		Until: h.now.Add(h.w.Settings.ApprovalTTL),
	}, i.LastSeq)
}

func (h handler) no(b events.ToolReject) Answer {
	i, a, ok := h.invocation(b.Session, b.Invocation)
	if !ok {
		return a
	}
	switch i.Status() {
	case ApprovalRequested:
		return h.decide(events.ApprovalDenied{Ref: toolRef(i), Decision: h.decision(), Reason: b.Reason}, i.LastSeq)
	case Requested, Previewed, Approved:
		return h.rejected(i, events.ToolExecutionRejected{Reason: "a person said no" + because(b.Reason), Denied: true})
	case Started, CancelRequested:
		return h.reject("invocation %q runs already; use tool.cancel to stop it", b.Invocation)
	}
	return h.reject("invocation %q is %s%s", b.Invocation, i.Status(), h.review(i))
}

func (h handler) stop(b events.ToolCancel) Answer {
	i, a, ok := h.invocation(b.Session, b.Invocation)
	if !ok {
		return a
	}
	switch i.Status() {
	case Requested, Previewed, ApprovalRequested, Approved:
		return h.rejected(i, events.ToolExecutionRejected{Reason: "cancelled" + because(b.Reason)})
	case Started:
		return h.decide(events.CancelRequested{Ref: toolRef(i), Decision: h.decision(), Reason: b.Reason}, i.LastSeq)
	}
	return h.reject("invocation %q is %s%s", b.Invocation, i.Status(), h.review(i))
}

// review points out the follow-up of i that is still open, if there is one.
func (h handler) review(i Invocation) string {
	if i.FollowUp() == nil {
		return ""
	}
	if next, _ := h.s.Tool(FollowUpID(i.ID)); next.Status().Ended() {
		return ""
	}
	return fmt.Sprintf("; its review is %q", FollowUpID(i.ID))
}

func (h handler) rejected(i Invocation, f events.ToolExecutionRejected) Answer {
	f.Ref, f.Decision, f.Tier = toolRef(i), h.decision(), i.Tier()
	return h.decide(f, i.LastSeq)
}

// why is the reason of an end that was no success.
func (i Invocation) why() string {
	switch f := i.End.(type) {
	case events.ToolExecutionFailed:
		return f.Reason
	case events.ToolExecutionRejected:
		return f.Reason
	}
	return ""
}

func short(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
