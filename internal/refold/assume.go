package refold

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"correx/pkg/events"
)

// assumed is the command that a fact carries out as far as the fact tells. A fact
// to which no command leads stays one.
func assumed(r events.Record, d events.Decision) events.Wish {
	w := events.Wish{ID: d.Command, Time: d.Now, Actor: d.Actor}
	id := events.ToolInvocationID(r.Aggregate.ID)
	s := r.Aggregate.Session
	switch f := r.Fact.(type) {
	case events.SessionStarted:
		w.Command = started(f, s)
	case events.MessageAdded:
		w.Command = events.SessionSay{Session: s, Text: f.Text}
	case events.SessionPaused:
		w.Command = events.SessionPause{Session: s, Reason: f.Reason}
	case events.SessionResumed:
		w.Command = events.SessionResume{Session: s, Reason: f.Reason}
	case events.SessionCancelled:
		w.Command = events.SessionCancel{Session: s, Reason: f.Reason}
	case events.ToolInvocationRequested:
		w.Command = events.ToolRun{Tool: f.Request.Tool, Parameters: f.Request.Parameters, Session: s, Invocation: id, Stage: f.Request.Stage, Tier: f.Tier}
	case events.ApprovalGranted:
		w.Command = events.ToolApprove{Session: s, Invocation: id, Digest: f.Digest, Scope: f.Scope, Reason: f.Reason}
	case events.ApprovalDenied:
		w.Command = events.ToolReject{Session: s, Invocation: id, Reason: f.Reason}
	case events.CancelRequested:
		w.Command = events.ToolCancel{Session: s, Invocation: id, Reason: f.Reason}
	case events.ToolExecutionRejected:
		w.Command = rejection(f, s, id)
	case events.InferenceRequested:
		w.Command = inference(f, events.InferenceID(r.Aggregate.ID))
	default:
		w.Faults = []string{"no command leads to " + string(r.Fact.FactName())}
		return w
	}
	w.Verb = w.Command.Verb()
	w.Subject, _ = events.CommandSubject(d.Actor, w.Verb) // only shown
	return w
}

func fieldNames(a, b map[string]json.RawMessage) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// short is a value for one line.
func short(v []byte) string {
	switch {
	case v == nil:
		return "not there"
	case len(v) > 120:
		return string(v[:120]) + "…"
	}
	return string(v)
}

func started(f events.SessionStarted, s events.SessionID) events.Command {
	if f.ForkOf != nil {
		return events.SessionFork{
			Session: f.ForkOf.Session, At: f.ForkOf.At, New: s, Task: f.Task, Say: f.Say, System: f.System, Model: f.Model,
			Capability: f.Capability, Tools: f.Tools, Mode: f.Mode, Limits: f.Limits, Generation: f.Generation,
		}
	}
	return events.SessionStart{
		Session: s, Task: f.Task, System: f.System, Model: f.Model, Capability: f.Capability, Tools: f.Tools,
		Mode: f.Mode, Limits: f.Limits, Generation: f.Generation,
	}
}

// inference names the model only if whoever asked did: else the world chooses, as
// it did then.
func inference(f events.InferenceRequested, id events.InferenceID) events.Command {
	c := events.InferenceRun{Inference: id, Messages: f.Messages, Generation: f.Generation}
	switch {
	case f.Routing == nil || f.Routing.Rule == events.RuleName:
		c.Model = f.Model
	case f.Routing.Rule != events.RuleDefault:
		c.Capability = f.Routing.Capability
	}
	return c
}

// rejection is what ended a call before it ran: a no, or a cancellation.
func rejection(f events.ToolExecutionRejected, s events.SessionID, id events.ToolInvocationID) events.Command {
	if f.Denied {
		return events.ToolReject{Session: s, Invocation: id, Reason: given(f.Reason, "a person said no")}
	}
	return events.ToolCancel{Session: s, Invocation: id, Reason: given(f.Reason, "cancelled")}
}

// given is the reason that stands behind the kernel's own words.
func given(reason, words string) string {
	return strings.TrimPrefix(strings.TrimPrefix(reason, words), ": ")
}
