package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"correx/pkg/events"
)

// A run that completed can ask, in its receipt, for one further call: the second
// look at what it made. The kernel opens it, and a person answers for it. Its id
// is that of the run that it follows with a suffix, which nobody else may give.

const followSuffix = "-c"

// FollowUpID names the follow-up of an invocation.
func FollowUpID(id events.ToolInvocationID) events.ToolInvocationID { return id + followSuffix }

// Followed returns the invocation that one of this id follows, if its id is a
// follow-up's.
func Followed(id events.ToolInvocationID) (events.ToolInvocationID, bool) {
	first, ok := strings.CutSuffix(string(id), followSuffix)
	return events.ToolInvocationID(first), ok
}

// Follows returns the invocation that i follows; empty: i is none's follow-up.
func (i Invocation) Follows() events.ToolInvocationID {
	if i.Requested == nil {
		return ""
	}
	return i.Requested.Follows
}

// FollowUp returns the call that i asks for: nil if it asks for none, or may not.
func (i Invocation) FollowUp() *events.FollowUp {
	f, ok := i.End.(events.ToolExecutionCompleted)
	if !ok || i.Presumes() != nil {
		return nil
	}
	return f.Receipt.FollowUp
}

// Presumes says why a follow-up that i asks for is not opened: an alarm, though
// its end holds.
func (i Invocation) Presumes() error {
	r := i.Receipt()
	switch _, completed := i.End.(events.ToolExecutionCompleted); {
	case r == nil || r.FollowUp == nil:
		return nil
	case !completed:
		return errors.New("a run that failed asks for a follow-up, which is not opened")
	case i.Follows() != "":
		return errors.New("a follow-up asks for a follow-up, which is not opened")
	case events.CheckToken(string(FollowUpID(i.ID))) != nil:
		return errors.New("a follow-up is not opened: the id of what it follows is too long")
	}
	return nil
}

// FollowUpDue reports whether i asks for a follow-up that nobody has opened yet.
func (s State) FollowUpDue(i Invocation) bool {
	if i.FollowUp() == nil {
		return false
	}
	next, _ := s.Tool(FollowUpID(i.ID))
	return next.status == ""
}

// followUp opens what a run asks for. Whether it may run is decided like that of
// every other call, when it is admitted.
func (r *reactor) followUp(i Invocation) {
	if !r.s.FollowUpDue(i) || r.over() || r.s.ID != events.System && r.s.Status == "" {
		return
	}
	want, id := i.FollowUp(), FollowUpID(i.ID)
	d := r.decision()
	d.Actor = i.Requested.Actor
	f := r.request(id, events.ToolRequest{
		Invocation: id, Session: i.Session, Stage: i.Requested.Request.Stage, Tool: want.Tool, Parameters: want.Parameters,
	}, events.T2, d)
	f.Follows = i.ID
	if !f.PreviewBy.IsZero() {
		f.PreviewBy = r.now.Add(r.previewWait(f.Follows))
	}
	old, _ := r.s.Tool(id)
	r.out.Decisions = append(r.out.Decisions, Decision{Fact: f, After: old.LastSeq, Cause: i.EndID})
}

// previewWait is how long a preview is waited for. Without one there is nothing
// to look at in a follow-up, so its worker may take its time, or start again.
func (r *reactor) previewWait(follows events.ToolInvocationID) time.Duration {
	if follows == "" {
		return r.w.Settings.PreviewWait
	}
	return max(r.w.Settings.PreviewWait, r.w.Settings.OfferWait)
}

// outOfPlace says why a tool must not be called in this way: by a follow-up that
// nothing asked for, or that it is not made for; or by anything else, when it is.
func (r *reactor) outOfPlace(i Invocation, offer events.ToolOffer) string {
	req := i.Requested
	switch {
	case req.Follows == "" && offer.FollowUpOnly:
		return fmt.Sprintf("tool %q cannot be called: it only follows up what another tool did", req.Request.Tool)
	case req.Follows == "":
		return ""
	case !offer.FollowUpOnly:
		return fmt.Sprintf("%q is no tool for follow-ups, so nothing that %s asks for may run it", req.Request.Tool, req.Follows)
	}
	first, _ := r.s.Tool(req.Follows)
	if want := first.FollowUp(); want == nil || FollowUpID(first.ID) != i.ID ||
		want.Tool != req.Request.Tool || string(want.Parameters) != string(req.Request.Parameters) {
		return fmt.Sprintf("no run of %s asked for this follow-up", req.Follows)
	}
	return ""
}

// reviewText is what a model is told of the follow-up of a run: what became of
// what waited.
func reviewText(i Invocation) string {
	switch f := i.End.(type) {
	case events.ToolExecutionCompleted:
		return "The changes were approved. " + success(i.Requested.Request.Tool, f.Receipt.Output)
	case events.ToolExecutionFailed:
		text := "The changes were approved, but not made: " + f.Reason + "."
		if f.Effects == events.EffectsNone || f.Effects == events.EffectsRolledBack {
			text += " Nothing was changed."
		}
		return text
	case events.ToolExecutionRejected:
		return "The changes were not made: " + f.Reason + ". Nothing was changed."
	}
	return "The changes wait for a review."
}

// waitsForReview stands behind the result of a run that asks for a follow-up.
const waitsForReview = "\nNothing is changed yet: the changes wait for a review."
