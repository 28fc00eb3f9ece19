package events

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// faults collects what is wrong with a body, each with its field.
type faults []string

func (f *faults) add(field, format string, a ...any) {
	*f = append(*f, field+" "+fmt.Sprintf(format, a...))
}

func (f *faults) token(field, value string, required bool) {
	if value == "" && !required {
		return
	}
	if err := CheckToken(value); err != nil {
		f.add(field, "%v", err)
	}
}

// session checks a session that must not be the system's.
func (f *faults) session(field string, s SessionID, required bool) {
	f.token(field, string(s), required)
	if s == System {
		f.add(field, "is %q, which no session may be called", System)
	}
}

func (f *faults) filled(field, value string) {
	if value == "" {
		f.add(field, "is missing")
	}
}

func (f *faults) generation(g GenerationConfig) {
	if g.Temperature < 0 || g.Temperature > 5 {
		f.add("generation.temperature", "is %g; use 0 to 5", g.Temperature)
	}
	if g.TopP < 0 || g.TopP > 1 {
		f.add("generation.top_p", "is %g; use 0 to 1", g.TopP)
	}
	if g.MinP < 0 || g.MinP > 1 {
		f.add("generation.min_p", "is %g; use 0 to 1", g.MinP)
	}
	if g.TopK < 0 {
		f.add("generation.top_k", "is %d; use 1 or more, or 0 for the default", g.TopK)
	}
	if g.RepeatPenalty < 0 || g.RepeatPenalty > 10 {
		f.add("generation.repeat_penalty", "is %g; use 0 to 10", g.RepeatPenalty)
	}
	if g.MaxTokens < 0 || g.MaxTokens > 1<<20 {
		f.add("generation.max_tokens", "is %d; use 1 to %d, or 0 for the default", g.MaxTokens, 1<<20)
	}
}

func (f *faults) capability(c ModelCapability) {
	switch c {
	case "", Coding, Reasoning, General:
	default:
		f.add("capability", "is %q; use %s, %s or %s", c, Coding, Reasoning, General)
	}
}

// Check implements [Command].
func (c SessionStart) Check() []string {
	var f faults
	f.session("session", c.Session, false)
	f.filled("task", c.Task)
	f.mode(c.Mode)
	f.capability(c.Capability)
	f.tools(c.Tools)
	f.limits(c.Limits)
	f.generation(c.Generation)
	return f
}

func (f *faults) mode(m ApprovalMode) {
	if m != "" && !m.Valid() {
		f.add("mode", "is %q; use prompt, auto or deny", m)
	}
}

func (f *faults) tools(tools []string) {
	for i, t := range tools {
		if t == "" {
			f.add(fmt.Sprintf("tools[%d]", i), "is empty")
		}
	}
}

func (f *faults) limits(l Limits) {
	if l.Turns < 0 || l.ToolCalls < 0 || l.Tokens < 0 || l.WallTime < 0 || l.WallTime > 365*24*time.Hour {
		f.add("limits", "has a negative number, or a wall time over a year")
	}
}

// Check implements [Command].
func (c SessionSay) Check() []string {
	var f faults
	f.session("session", c.Session, true)
	f.filled("text", c.Text)
	return f
}

// Check implements [Command].
func (c SessionPause) Check() []string { return checkSession(c.Session) }

// Check implements [Command].
func (c SessionResume) Check() []string { return checkSession(c.Session) }

// Check implements [Command].
func (c SessionCancel) Check() []string { return checkSession(c.Session) }

// Check implements [Command].
func (c SessionFork) Check() []string {
	var f faults
	f.session("session", c.Session, true)
	f.session("new", c.New, false)
	if c.At == 0 {
		f.add("at", "is missing; name a sequence of EVENTS")
	}
	f.mode(c.Mode)
	f.capability(c.Capability)
	f.tools(c.Tools)
	f.limits(c.Limits)
	f.generation(c.Generation)
	return f
}

func checkSession(s SessionID) []string {
	var f faults
	f.session("session", s, true)
	return f
}

// Check implements [Command].
func (c ToolRun) Check() []string {
	var f faults
	f.filled("tool", c.Tool)
	if len(c.Tool) > 256 {
		f.add("tool", "is %d bytes long; at most 256 are allowed", len(c.Tool))
	}
	if len(c.Parameters) == 0 {
		f.add("parameters", "is missing; use {} for none")
	} else if err := c.Parameters.Object(); err != nil {
		f.add("parameters", "%v", err)
	}
	f.token("session", string(c.Session), false)
	f.token("invocation", string(c.Invocation), false)
	f.token("stage", string(c.Stage), false)
	return f
}

// Check implements [Command].
func (c ToolApprove) Check() []string {
	f := checkInvocation(c.Session, c.Invocation)
	if c.Digest == "" {
		f.add("digest", "is missing; an approval names the digest of exactly what was shown")
	}
	switch c.Scope {
	case "", ScopeOnce, ScopeSession:
	default:
		f.add("scope", "is %q; use once or session", c.Scope)
	}
	return f
}

// Check implements [Command].
func (c ToolReject) Check() []string { return checkInvocation(c.Session, c.Invocation) }

// Check implements [Command].
func (c ToolCancel) Check() []string { return checkInvocation(c.Session, c.Invocation) }

func checkInvocation(s SessionID, i ToolInvocationID) faults {
	var f faults
	f.token("session", string(s), false)
	f.token("invocation", string(i), true)
	return f
}

// Check implements [Command].
func (c InferenceRun) Check() []string {
	var f faults
	if (c.Task == "") == (len(c.Messages) == 0) {
		f.add("task", "or messages: give exactly one of them")
	}
	for i, m := range c.Messages {
		switch m.Role {
		case RoleSystem, RoleUser, RoleAssistant:
		default:
			f.add(fmt.Sprintf("messages[%d].role", i), "is %q; use system, user or assistant", m.Role)
		}
	}
	f.capability(c.Capability)
	f.token("inference", string(c.Inference), false)
	f.generation(c.Generation)
	return f
}

// Check implements [Command].
func (c ModelLoad) Check() []string { return checkModel(c.Model, c.Worker) }

// Check implements [Command].
func (c ModelUnload) Check() []string {
	f := checkModel(c.Model, c.Worker)
	if c.Drain && c.Force {
		f.add("drain", "and force: give at most one of them")
	}
	return f
}

func checkModel(m ModelID, w WorkerID) faults {
	var f faults
	f.filled("model", string(m))
	f.token("worker", string(w), false)
	return f
}

// unknown names the fields of data that t does not have, at any depth. Names are
// compared exactly: encoding/json would take "Digest" for "digest".
func (f *faults) unknown(t reflect.Type, data []byte, at string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reads := reflect.PointerTo(t); reads.Implements(reflect.TypeFor[json.Unmarshaler]()) || reads.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return
	}
	switch t.Kind() {
	case reflect.Slice:
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil {
			for n, e := range list {
				f.unknown(t.Elem(), e, fmt.Sprintf("%s[%d]", at, n))
			}
		}
	case reflect.Struct:
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil {
			return
		}
		fields := fieldsOf(t)
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if field, ok := fields[name]; ok {
				f.unknown(field, object[name], strings.TrimPrefix(at+"."+name, "."))
			} else {
				f.add(cmp.Or(at, "body")+":", "unknown field %q; there are %s", clip(name), strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
			}
		}
	}
}

// fieldsOf returns the types of a struct's fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			m[name] = f.Type
		}
	}
	return m
}

// duplicateFields names the fields that stand twice in an object, at any depth:
// two readers could take a different one of them.
func duplicateFields(data []byte) []string {
	var out faults
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	type level struct {
		seen map[string]bool // nil: an array
		key  bool            // the next string is a key
	}
	var stack []level
	for {
		tok, err := dec.Token()
		if err != nil {
			return out
		}
		top := len(stack) - 1
		if d, ok := tok.(json.Delim); ok {
			switch d {
			case '{':
				stack = append(stack, level{seen: map[string]bool{}, key: true})
				continue
			case '[':
				stack = append(stack, level{})
				continue
			}
			stack = stack[:top]
			top--
		} else if s, ok := tok.(string); ok && top >= 0 && stack[top].key {
			if stack[top].seen[s] {
				out.add(s, "stands twice")
			}
			stack[top].seen[s] = true
			stack[top].key = false
			continue
		}
		if top >= 0 && stack[top].seen != nil {
			stack[top].key = true
		}
	}
}
