package session

import (
	"fmt"
	"time"

	"correx/pkg/events"
)

// An Answer is what becomes of a command in a given state. Exactly one of its
// parts is set.
type Answer struct {
	Decision *Decision // carry it out by this fact
	Reject   []string  // it cannot be carried out, and nothing can change that
	Wait     time.Time // it came early: what it refers to may still come, until then
	Why      string    // what it waits for
}

// Handle says what becomes of a command whose body is sound. Its key is s: the
// session, or the invocation or inference of no session, that [KeyOf] names.
// Whoever calls it has looked for a citation in s before, and rejects only
// after reading to the end of the log.
//
// An error is one of others, at which only a fork looks; then there is no answer
// yet.
func Handle(s State, w World, c events.Wish, now time.Time, others Others) (Answer, error) {
	h := handler{s, w, c, now}
	if b, ok := c.Command.(events.SessionFork); ok {
		return h.fork(b, others)
	}
	return h.answer(), nil
}

// answer is [Handle] of whatever looks at its own key alone.
func (h handler) answer() Answer {
	switch b := h.c.Command.(type) {
	case events.SessionStart:
		return h.start(b)
	case events.SessionSay:
		return h.say(b)
	case events.SessionPause:
		return h.pause(b)
	case events.SessionResume:
		return h.resume(b)
	case events.SessionCancel:
		return h.cancel(b)
	case events.ToolRun:
		return h.run(b)
	case events.ToolApprove:
		return h.approve(b)
	case events.ToolReject:
		return h.no(b)
	case events.ToolCancel:
		return h.stop(b)
	case events.InferenceRun:
		return h.infer(b)
	}
	return h.reject("%s is not supported by this version", h.c.Verb)
}

// A Key names the State that a record or a command belongs to: a session, or
// one aggregate of system. An invocation and its follow-up have one key.
type Key struct {
	Session events.SessionID
	Kind    events.Kind // empty for a session
	ID      string      // likewise
}

// Filters returns the subject filters of all records of the key.
func (k Key) Filters() []string {
	if k.Kind == "" {
		return []string{events.SessionFilter(k.Session)}
	}
	all := []string{events.Aggregate{Session: k.Session, Kind: k.Kind, ID: k.ID}.Filter()}
	if k.Kind == events.KindTool {
		next := FollowUpID(events.ToolInvocationID(k.ID))
		all = append(all, events.Aggregate{Session: k.Session, Kind: k.Kind, ID: string(next)}.Filter())
	}
	return all
}

// KeyOfRecord returns the key that a record is folded into. Records about
// workers, models and commands belong to none of them.
func KeyOfRecord(r events.Record) (Key, bool) {
	a := r.Aggregate
	switch {
	case a.Session == "":
		return Key{}, false
	case a.Session != events.System:
		return Key{Session: a.Session}, true
	case a.Kind == events.KindTool:
		return systemTool(events.ToolInvocationID(a.ID)), true
	case a.Kind == events.KindInference:
		return Key{a.Session, a.Kind, a.ID}, true
	}
	return Key{}, false
}

// KeyOf returns the key of a command. What a command does not name is derived
// from its identity, so that whoever carries it out, and how often, it is one.
func KeyOf(c events.Wish) (Key, bool) {
	switch b := c.Command.(type) {
	case events.SessionStart:
		return sessionKey(b.Session, "s"+string(c.ID))
	case events.SessionSay:
		return sessionKey(b.Session, "")
	case events.SessionPause:
		return sessionKey(b.Session, "")
	case events.SessionResume:
		return sessionKey(b.Session, "")
	case events.SessionCancel:
		return sessionKey(b.Session, "")
	case events.SessionFork:
		return sessionKey(b.New, "s"+string(c.ID))
	case events.ToolRun:
		return toolKey(b.Session, invocationID(b, c))
	case events.ToolApprove:
		return toolKey(b.Session, b.Invocation)
	case events.ToolReject:
		return toolKey(b.Session, b.Invocation)
	case events.ToolCancel:
		return toolKey(b.Session, b.Invocation)
	case events.InferenceRun:
		return Key{events.System, events.KindInference, string(inferenceID(b, c))}, true
	}
	return Key{}, false
}

func sessionKey(s events.SessionID, otherwise string) (Key, bool) {
	if s == "" {
		s = events.SessionID(otherwise)
	}
	return Key{Session: s}, s != ""
}

func toolKey(s events.SessionID, i events.ToolInvocationID) (Key, bool) {
	if s == "" || s == events.System {
		return systemTool(i), true
	}
	return Key{Session: s}, true
}

func systemTool(i events.ToolInvocationID) Key {
	first, _ := Followed(i)
	return Key{events.System, events.KindTool, string(first)}
}

func invocationID(b events.ToolRun, c events.Wish) events.ToolInvocationID {
	if b.Invocation != "" {
		return b.Invocation
	}
	return events.ToolInvocationID("i" + string(c.ID))
}

func inferenceID(b events.InferenceRun, c events.Wish) events.InferenceID {
	if b.Inference != "" {
		return b.Inference
	}
	return events.InferenceID("n" + string(c.ID))
}

type handler struct {
	s   State
	w   World
	c   events.Wish
	now time.Time
}

func (h handler) reject(format string, a ...any) Answer {
	return Answer{Reject: []string{fmt.Sprintf(format, a...)}}
}

func (h handler) decide(f events.Fact, after uint64) Answer {
	return Answer{Decision: &Decision{Fact: f, After: after, Cause: "command/" + string(h.c.ID)}}
}

func (h handler) decision() events.Decision {
	return events.Decision{DecidedAt: h.s.Seq, WorldAt: h.w.Seq, Now: h.now, Command: h.c.ID, Actor: h.c.Actor}
}

func (h handler) main(f events.Fact) Answer { return h.decide(f, h.s.MainSeq) }

func (h handler) ref(session events.SessionID) events.Ref {
	return events.Ref{Session: session, ID: events.Main}
}

func (h handler) start(b events.SessionStart) Answer {
	key, _ := KeyOf(h.c)
	if h.s.Status != "" {
		return h.reject("session %q exists; choose another id, or none to be given one", key.Session)
	}
	mode := b.Mode
	if mode == "" {
		mode = h.w.Settings.Mode
	}
	if mode == "" {
		mode = events.ModePrompt
	}
	return h.main(events.SessionStarted{
		Ref: h.ref(key.Session), Decision: h.decision(), Task: b.Task, System: b.System, Model: b.Model,
		Capability: b.Capability, Tools: b.Tools, Mode: mode, Limits: b.Limits, Generation: b.Generation,
	})
}

// exists answers commands to sessions that are not there, or not any more.
func (h handler) exists(session events.SessionID, allowed string) (Answer, bool) {
	switch {
	case h.s.Status == "":
		return h.reject("session %q does not exist", session), false
	case !contains(allowed, string(h.s.Status)):
		return h.reject("session %q is %s", session, h.s.Status), false
	}
	return Answer{}, true
}

func (h handler) say(b events.SessionSay) Answer {
	if a, ok := h.exists(b.Session, "RUNNING PAUSED COMPLETED FAILED"); !ok {
		return a
	}
	return h.main(events.MessageAdded{Ref: h.ref(b.Session), Decision: h.decision(), Role: events.RoleUser, Text: b.Text})
}

func (h handler) pause(b events.SessionPause) Answer {
	if a, ok := h.exists(b.Session, "RUNNING"); !ok {
		return a
	}
	return h.main(events.SessionPaused{Ref: h.ref(b.Session), Decision: h.decision(), Reason: b.Reason})
}

func (h handler) resume(b events.SessionResume) Answer {
	if a, ok := h.exists(b.Session, "PAUSED COMPLETED FAILED"); !ok {
		return a
	}
	return h.main(events.SessionResumed{Ref: h.ref(b.Session), Decision: h.decision(), Reason: b.Reason})
}

func (h handler) cancel(b events.SessionCancel) Answer {
	if a, ok := h.exists(b.Session, "RUNNING PAUSED COMPLETED FAILED"); !ok {
		return a
	}
	return h.main(events.SessionCancelled{Ref: h.ref(b.Session), Decision: h.decision(), Reason: b.Reason})
}

func (h handler) run(b events.ToolRun) Answer {
	session, id := b.Session, invocationID(b, h.c)
	if session == "" || session == events.System {
		session = events.System
	} else if a, ok := h.exists(session, "RUNNING PAUSED"); !ok {
		return a
	}
	if why := reserved(session, id); why != "" {
		return h.reject("invocation %q %s; choose another id, or none to be given one", id, why)
	}
	if o, ok := h.w.Tool(b.Tool); ok && o.What.FollowUpOnly {
		return h.reject("tool %q cannot be asked for: it only follows up what another tool did", b.Tool)
	}
	old, _ := h.s.Tool(id)
	if old.Status() != "" {
		return h.reject("invocation %q exists and is %s; choose another id, or none to be given one", id, old.Status())
	}
	stage := b.Stage
	if stage == "" {
		stage = "actor"
	}
	r := reactor{s: h.s, w: h.w, now: h.now}
	return h.decide(r.request(id, events.ToolRequest{
		Invocation: id, Session: session, Stage: stage, Tool: b.Tool, Parameters: b.Parameters,
	}, b.Tier, h.decision()), old.LastSeq)
}

func (h handler) infer(b events.InferenceRun) Answer {
	id := inferenceID(b, h.c)
	old, _ := h.s.Inference(id)
	if old.Status() != "" {
		return h.reject("inference %q exists and is %s; choose another id, or none to be given one", id, old.Status())
	}
	q := h.w.wanted(b.Model, b.Capability)
	m, ok := h.w.Route(q)
	if !ok {
		until := h.c.Time.Add(h.w.Settings.OfferWait)
		if h.now.Before(until) {
			return Answer{Wait: until, Why: "a model-worker that offers " + q.String()}
		}
		return h.reject("no model-worker offered %s before %s", q, stamp(until))
	}
	messages := b.Messages
	if len(messages) == 0 {
		messages = []events.ChatMessage{{Role: events.RoleUser, Content: b.Task}}
	}
	d := h.decision()
	return h.decide(events.InferenceRequested{
		Ref: events.Ref{Session: events.System, ID: string(id)}, Decision: d, Stage: "actor",
		Model: m.What.Name, ModelToken: m.What.Token, Through: max(d.DecidedAt, d.WorldAt), Generation: b.Generation,
		Routing: &m.Routing, Messages: messages, Deadline: h.now.Add(h.w.Settings.OfferWait),
	}, old.LastSeq)
}
