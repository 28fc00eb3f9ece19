package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"correx/internal/approval"
	"correx/internal/schema"
	"correx/pkg/events"
)

// invocation moves one invocation on.
func (r *reactor) invocation(i Invocation) {
	switch {
	case i.status == "":
	case i.status.Ended():
		r.followUp(i)
	case i.status == Denied:
		r.reject(i, events.ToolExecutionRejected{Reason: "a person said no" + because(i.Denied.Reason), Denied: true})
	case i.status == Expired:
		r.reject(i, events.ToolExecutionRejected{Reason: "nobody answered before " + stamp(i.Expired.Deadline), Expired: true})
	case r.over():
		r.endInvocation(i, "the session ended")
	case r.s.ID != events.System && r.s.Status == "":
		r.endInvocation(i, "there is no such session")
	default:
		switch i.status {
		case Requested, Previewed:
			r.admit(i)
		case ApprovalRequested:
			r.question(i)
		case Approved:
			r.permitted(i)
		case Started, CancelRequested:
			if r.out.Waiting == "" {
				r.out.Waiting = fmt.Sprintf("tool %s (%s) on %s", i.Requested.Request.Tool, i.ID, i.Started.Worker)
			}
		}
	}
}

// endInvocation ends what must not go on: at once if it never ran, else by
// asking its owner.
func (r *reactor) endInvocation(i Invocation, reason string) {
	switch i.status {
	case Started:
		r.decide(events.CancelRequested{Ref: toolRef(i), Decision: r.decision(), Reason: reason}, i.LastSeq)
	case CancelRequested:
	default:
		r.reject(i, events.ToolExecutionRejected{Reason: reason})
	}
}

func toolRef(i Invocation) events.Ref { return events.Ref{Session: i.Session, ID: string(i.ID)} }

func (r *reactor) reject(i Invocation, f events.ToolExecutionRejected) {
	f.Ref, f.Decision, f.Tier = toolRef(i), r.decision(), i.Tier()
	r.decide(f, i.LastSeq)
}

// admit decides whether what was asked for is refused, awaited, asked or run.
func (r *reactor) admit(i Invocation) {
	req := i.Requested.Request
	if why := r.unasked(i); why != "" {
		r.reject(i, events.ToolExecutionRejected{Reason: why})
		return
	}
	offer, offered := r.w.Tool(req.Tool)
	if !offered {
		until := i.Requested.Now.Add(r.w.Settings.OfferWait)
		if !r.now.Before(until) {
			r.reject(i, events.ToolExecutionRejected{Reason: fmt.Sprintf("no worker offered the tool %q before %s", req.Tool, stamp(until))})
			return
		}
		r.wait(until, "a tool-worker that offers %s", req.Tool)
		return
	}
	if why := r.unfit(i, offer.What); why != "" {
		r.reject(i, events.ToolExecutionRejected{Reason: why})
		return
	}
	tier := max(i.Tier(), offer.What.Tier)
	v := r.verdict(i, tier)
	if v.Effect == events.Deny {
		r.reject(i, events.ToolExecutionRejected{Reason: "not allowed: " + v.Why})
		return
	}
	notes := r.confinement(offer.What, tier)
	if i.Previewed == nil && offer.What.Previews && tier >= events.T2 {
		until := later(i.Requested.PreviewBy, offer.Since.Add(r.previewWait(i.Follows())))
		switch {
		case r.now.Before(until):
			r.wait(until, "a preview of %s (%s)", req.Tool, i.ID)
			return
		case i.Follows() != "":
			r.reject(i, events.ToolExecutionRejected{Reason: fmt.Sprintf("no preview came before %s, so that there is nothing to look at", stamp(until))})
			return
		}
		notes = append(notes, "no preview came before "+stamp(until))
	}
	if v.Effect == events.Allow {
		r.grant(i, v, tier, events.ScopeOnce)
		return
	}
	r.put(i, v, tier, notes)
}

// unasked says why i is of a tool that whoever asked may not name.
func (r *reactor) unasked(i Invocation) string {
	switch tool := i.Requested.Request.Tool; {
	case !r.mayName(i):
		return fmt.Sprintf("unknown tool %q; there are %s", tool, r.toolNames())
	case r.shut(i):
		return fmt.Sprintf("tool %q was not on offer in this turn", tool)
	}
	return ""
}

// unfit says why an offer cannot serve i.
func (r *reactor) unfit(i Invocation, offer events.ToolOffer) string {
	if why := r.outOfPlace(i, offer); why != "" {
		return why
	}
	if err := schema.Validate(offer.Schema, i.Requested.Request.Parameters); err != nil {
		return "invalid arguments: " + err.Error()
	}
	if i.Previewed != nil && !i.Previewed.Valid {
		return "invalid: " + i.Previewed.Reason
	}
	return ""
}

// put asks a person.
func (r *reactor) put(i Invocation, v approval.Verdict, tier events.Tier, notes []string) {
	policy := r.w.Settings.Policy.Version
	r.decide(events.ApprovalRequested{
		Ref: toolRef(i), Decision: r.decision(), Token: i.Requested.Token, Tool: i.Requested.Request.Tool, Tier: tier,
		Digest: i.Digest(policy), Policy: policy, Why: v.Why, Notes: notes,
		Deadline: r.now.Add(r.w.Settings.ApprovalWait),
	}, i.LastSeq)
}

func (r *reactor) grant(i Invocation, v approval.Verdict, tier events.Tier, scope events.ApprovalScope) {
	policy := r.w.Settings.Policy.Version
	r.decide(events.ApprovalGranted{
		Ref: toolRef(i), Decision: r.decision(), Token: i.Requested.Token, Tool: i.Requested.Request.Tool, Tier: tier,
		Digest: i.Digest(policy), Policy: policy, By: v.By, Scope: scope, Reason: v.Why,
		Until: r.now.Add(r.w.Settings.ApprovalTTL),
	}, i.LastSeq)
}

func (r *reactor) verdict(i Invocation, tier events.Tier) approval.Verdict {
	return approval.Decide(r.w.Settings.Policy, approval.Question{
		Tool: i.Requested.Request.Tool, Parameters: i.Requested.Request.Parameters,
		Tier: tier, Mode: r.mode(), Rules: r.s.Rules, Now: r.now, Follows: i.Follows(),
	})
}

func (r *reactor) mode() events.ApprovalMode {
	if r.s.Started != nil && r.s.Started.Mode != "" {
		return r.s.Started.Mode
	}
	if r.w.Settings.Mode != "" {
		return r.w.Settings.Mode
	}
	return events.ModePrompt
}

// question waits for a person, unless somebody has answered the same question
// for the session meanwhile, or the policy has come to deny it.
func (r *reactor) question(i Invocation) {
	switch v := r.verdict(i, i.Asked.Tier); {
	case v.Effect == events.Deny:
		r.reject(i, events.ToolExecutionRejected{Reason: "not allowed: " + v.Why})
		return
	case v.Effect == events.Allow && v.By == "rule" && i.Asked.Policy == r.w.Settings.Policy.Version:
		r.grant(i, v, i.Asked.Tier, events.ScopeOnce)
		return
	}
	if !r.now.Before(i.Asked.Deadline) {
		r.decide(events.ApprovalExpired{Ref: toolRef(i), Decision: r.decision(), Deadline: i.Asked.Deadline}, i.LastSeq)
		return
	}
	r.wait(i.Asked.Deadline, "a person to answer for %s (%s)", i.Requested.Request.Tool, i.ID)
}

// permitted waits for a worker as long as the approval lasts.
func (r *reactor) permitted(i Invocation) {
	if r.now.After(i.Granted.Until) {
		r.reject(i, events.ToolExecutionRejected{Reason: "no worker started it before the approval ended at " + stamp(i.Granted.Until)})
		return
	}
	r.wait(i.Granted.Until.Add(time.Nanosecond), "a tool-worker to start %s (%s)", i.Requested.Request.Tool, i.ID)
}

// mayName reports whether the tool is one that this request may be about. A
// model has the tools of its session; an actor, or a run for its follow-up, may
// name any.
func (r *reactor) mayName(i Invocation) bool {
	if i.Requested.Actor != "" || i.Follows() != "" {
		return true
	}
	tool := i.Requested.Request.Tool
	if names := r.toolsWanted(); len(names) > 0 {
		for _, n := range names {
			if n == tool {
				return true
			}
		}
		return false
	}
	_, ok := r.w.Tool(tool)
	return ok
}

// shut reports whether a model called what its turn had withdrawn. Whoever writes
// down what a model said is not believed to have checked that.
func (r *reactor) shut(i Invocation) bool {
	if i.Requested.Actor != "" || i.Follows() != "" {
		return false
	}
	id, _, _ := strings.Cut(string(i.ID), "-")
	asked, ok := r.s.Inference(events.InferenceID(id))
	if !ok || asked.Requested == nil {
		return false
	}
	return asked.Requested.FinalOnly || slices.Contains(asked.Requested.Withdrawn, i.Requested.Request.Tool)
}

// toolsWanted returns the names that the session, else the configuration, gives;
// empty means all that are offered.
func (r *reactor) toolsWanted() []string {
	if r.s.Started != nil && len(r.s.Started.Tools) > 0 {
		return r.s.Started.Tools
	}
	return r.w.Settings.SessionTools
}

func (r *reactor) toolNames() string {
	names := r.toolsWanted()
	if len(names) == 0 {
		for _, o := range r.w.Tools() {
			if !o.What.FollowUpOnly {
				names = append(names, o.What.Name)
			}
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// ruleFor is the answer that a grant for the session gives.
func ruleFor(i Invocation, ttl time.Duration) events.ApprovalRuleGranted {
	return events.ApprovalRuleGranted{
		Decision:   events.Decision{Actor: i.Granted.Actor},
		Tool:       i.Granted.Tool,
		Parameters: approval.ParametersHash(i.Requested.Request.Parameters),
		MaxTier:    i.Granted.Tier,
		Until:      i.Granted.Now.Add(ttl),
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
