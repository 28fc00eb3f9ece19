package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

// A Command is a wish by an actor.
type Command interface {
	Verb() Verb
	// Check names every fault of the body, each with its field.
	Check() []string
}

// A Verb is "<noun>.<verb>", as in "session.start".
type Verb string

// A Wish is a command as it stands on the log.
type Wish struct {
	ID      CommandID
	Seq     uint64 // in COMMANDS
	Time    time.Time
	Subject string
	Actor   ActorID
	Verb    Verb
	Command Command  // nil when Faults is not
	Faults  []string // why it cannot be carried out, whatever the log says
}

// SessionStart opens a session.
type SessionStart struct {
	Session    SessionID        `json:"session,omitempty"` // empty: the kernel gives one
	Task       string           `json:"task"`
	System     string           `json:"system,omitempty"`
	Model      ModelID          `json:"model,omitempty"`
	Capability ModelCapability  `json:"capability,omitempty"`
	Tools      []string         `json:"tools,omitempty"`
	Mode       ApprovalMode     `json:"mode,omitempty"`
	Limits     Limits           `json:"limits,omitzero"`
	Generation GenerationConfig `json:"generation,omitzero"`
}

// SessionSay adds a message; a session that completed or failed goes on.
type SessionSay struct {
	Session SessionID `json:"session"`
	Text    string    `json:"text"`
}

// SessionPause stops a session between its steps.
type SessionPause struct {
	Session SessionID `json:"session"`
	Reason  string    `json:"reason,omitempty"`
}

// SessionResume lets a paused, completed or failed session go on.
type SessionResume struct {
	Session SessionID `json:"session"`
	Reason  string    `json:"reason,omitempty"`
}

// SessionCancel ends a session for good.
type SessionCancel struct {
	Session SessionID `json:"session"`
	Reason  string    `json:"reason,omitempty"`
}

// SessionFork opens a session that shares another's past up to a sequence. What
// it leaves empty is as the other one has it, each limit by itself.
type SessionFork struct {
	Session    SessionID        `json:"session"`
	At         uint64           `json:"at"`
	New        SessionID        `json:"new,omitempty"`  // empty: the kernel gives an id
	Task       string           `json:"task,omitempty"` // in place of the other's
	Say        string           `json:"say,omitempty"`  // what the user says next
	System     string           `json:"system,omitempty"`
	Model      ModelID          `json:"model,omitempty"`
	Capability ModelCapability  `json:"capability,omitempty"`
	Tools      []string         `json:"tools,omitempty"`
	Mode       ApprovalMode     `json:"mode,omitempty"`
	Limits     Limits           `json:"limits,omitzero"`
	Generation GenerationConfig `json:"generation,omitzero"` // as a whole
}

// ToolRun asks for a tool with no model at all.
type ToolRun struct {
	Tool       string           `json:"tool"`
	Parameters Raw              `json:"parameters"`
	Session    SessionID        `json:"session,omitempty"`    // empty: of no session
	Invocation ToolInvocationID `json:"invocation,omitempty"` // empty: the kernel gives one
	Stage      StageID          `json:"stage,omitempty"`
	Tier       Tier             `json:"tier,omitempty"` // raises the tool's
}

// ToolApprove permits an invocation. Digest must be that of what was shown.
type ToolApprove struct {
	Session    SessionID        `json:"session,omitempty"` // empty or "system": of no session
	Invocation ToolInvocationID `json:"invocation"`
	Digest     string           `json:"digest"`
	Scope      ApprovalScope    `json:"scope,omitempty"`
	Reason     string           `json:"reason,omitempty"`
}

// ToolReject says no.
type ToolReject struct {
	Session    SessionID        `json:"session,omitempty"`
	Invocation ToolInvocationID `json:"invocation"`
	Reason     string           `json:"reason,omitempty"`
}

// ToolCancel stops an invocation, running or not.
type ToolCancel struct {
	Session    SessionID        `json:"session,omitempty"`
	Invocation ToolInvocationID `json:"invocation"`
	Reason     string           `json:"reason,omitempty"`
}

// InferenceRun asks a model once, with no loop: Messages, or a Task that is one
// user message.
type InferenceRun struct {
	Task       string           `json:"task,omitempty"`
	Messages   []ChatMessage    `json:"messages,omitempty"`
	Model      ModelID          `json:"model,omitempty"`
	Capability ModelCapability  `json:"capability,omitempty"`
	Inference  InferenceID      `json:"inference,omitempty"` // empty: the kernel gives one
	Generation GenerationConfig `json:"generation,omitzero"`
}

// ModelLoad wants a model in memory.
type ModelLoad struct {
	Model  ModelID  `json:"model"`
	Worker WorkerID `json:"worker,omitempty"` // empty: whichever offers it
}

// ModelUnload wants a model out of memory; it waits for what is in flight
// unless Force.
type ModelUnload struct {
	Model  ModelID  `json:"model"`
	Worker WorkerID `json:"worker,omitempty"`
	Drain  bool     `json:"drain,omitempty"` // the default, for those who like to say so
	Force  bool     `json:"force,omitempty"`
}

func (SessionStart) Verb() Verb  { return "session.start" }
func (SessionSay) Verb() Verb    { return "session.say" }
func (SessionPause) Verb() Verb  { return "session.pause" }
func (SessionResume) Verb() Verb { return "session.resume" }
func (SessionCancel) Verb() Verb { return "session.cancel" }
func (SessionFork) Verb() Verb   { return "session.fork" }
func (ToolRun) Verb() Verb       { return "tool.request" }
func (ToolApprove) Verb() Verb   { return "tool.approve" }
func (ToolReject) Verb() Verb    { return "tool.reject" }
func (ToolCancel) Verb() Verb    { return "tool.cancel" }
func (InferenceRun) Verb() Verb  { return "inference.request" }
func (ModelLoad) Verb() Verb     { return "model.load" }
func (ModelUnload) Verb() Verb   { return "model.unload" }

// CommandTypes returns a zero value of every command, ordered by verb.
func CommandTypes() []Command {
	all := []Command{
		SessionStart{}, SessionSay{}, SessionPause{}, SessionResume{}, SessionCancel{}, SessionFork{},
		ToolRun{}, ToolApprove{}, ToolReject{}, ToolCancel{}, InferenceRun{}, ModelLoad{}, ModelUnload{},
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Verb() < all[j].Verb() })
	return all
}

// CommandSubject returns the subject of a command, or why there is none.
func CommandSubject(a ActorID, v Verb) (string, error) {
	if err := CheckToken(string(a)); err != nil {
		return "", fmt.Errorf("actor %w", err)
	}
	return PrefixCommand + "." + string(a) + "." + string(v), nil
}

// EncodeCommand returns the body of c.
func EncodeCommand(c Command) ([]byte, error) { return marshal(c) }

// DecodeCommand reads a message of COMMANDS. It never fails: a command that
// cannot be carried out names every fault in Faults. The body is the payload
// itself, or a CloudEvent in structured mode whose data is the payload.
func DecodeCommand(id CommandID, seq uint64, stored time.Time, subject string, h Header, data []byte) Wish {
	w := Wish{ID: id, Seq: seq, Time: stored, Subject: subject}
	t := strings.Split(subject, ".")
	if len(t) > 1 {
		w.Actor = ActorID(t[1])
	}
	if len(t) != 4 || t[0] != PrefixCommand {
		w.Faults = []string{fmt.Sprintf("subject %q is not cmd.<actor>.<noun>.<verb>", clip(subject))}
		return w
	}
	w.Verb = Verb(t[2] + "." + t[3])
	if err := CheckToken(t[1]); err != nil {
		w.Faults = append(w.Faults, "actor "+err.Error())
	}
	if h.Get(HeaderNatsStream) != "" {
		w.Faults = append(w.Faults, "it "+ErrForged.Error())
	}
	if len(data) > MaxCommand {
		w.Faults = append(w.Faults, fmt.Sprintf("body is %d bytes long; at most %d are allowed: put large content into a file", len(data), MaxCommand))
		return w
	}
	payload := unwrap(h, data)
	c, faults := decodeCommand(w.Verb, payload)
	if len(faults) == 0 && len(payload) < len(data) {
		faults = duplicateFields(data) // of the envelope
	}
	w.Faults = append(w.Faults, faults...)
	if len(w.Faults) == 0 {
		w.Command = c
	}
	return w
}

// unwrap returns the data of a CloudEvent in structured mode, and anything else
// as it is.
func unwrap(h Header, data []byte) []byte {
	if !strings.HasPrefix(h.Get("Content-Type"), "application/cloudevents") {
		return data
	}
	var e struct {
		Data json.RawMessage `json:"data"`
	}
	if json.Unmarshal(data, &e) != nil || e.Data == nil {
		return data
	}
	return e.Data
}

func decodeCommand(v Verb, data []byte) (Command, []string) {
	for _, c := range CommandTypes() {
		if c.Verb() != v {
			continue
		}
		p := reflect.New(reflect.TypeOf(c))
		faults, read := strict(data, p.Interface())
		if !read {
			return nil, faults
		}
		c = p.Elem().Interface().(Command)
		return c, append(faults, c.Check()...)
	}
	return nil, []string{fmt.Sprintf("no command is called %q; there are %s", clip(string(v)), strings.Join(verbs(), ", "))}
}

func verbs() []string {
	var s []string
	for _, c := range CommandTypes() {
		s = append(s, string(c.Verb()))
	}
	return s
}

// strict decodes one JSON object into p and names every fault. It reports
// whether p could be filled, faults or not.
func strict(data []byte, p any) (faults faults, read bool) {
	if !utf8.Valid(data) {
		return []string{"body is not valid UTF-8"}, false
	}
	if t := bytes.TrimSpace(data); len(t) == 0 || t[0] != '{' {
		return []string{"body is not a JSON object"}, false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(p)
	if err != nil {
		faults = append(faults, fmt.Sprintf("body: %s", strings.TrimPrefix(err.Error(), "json: ")))
		if !json.Valid(data) {
			return faults, false
		}
	}
	if len(bytes.TrimSpace(data[dec.InputOffset():])) > 0 {
		return []string{"body has something behind the JSON object"}, false
	}
	faults.unknown(reflect.TypeOf(p), data, "")
	return append(faults, duplicateFields(data)...), err == nil
}

func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
