package events_test

import (
	"errors"
	"strings"
	"testing"

	"correx/pkg/events"
)

const started = `{"session":"s1","id":"t1-0","worker":"w1","boot":"b","nonce":"n","attempt":1,"isolation":"full"}`

func TestDecodeIsTolerantAndSaysWhatDoesNotHold(t *testing.T) {
	typ := func(v string) events.Header { return events.Header{events.HeaderType: {v}} }
	for _, c := range []struct {
		name, subject string
		h             events.Header
		body, want    string
		unreadable    bool
	}{
		{name: "no header at all", subject: "evt.s1.tool.t1-0.started", body: started},
		{name: "an unknown field", subject: "evt.s1.tool.t1-0.started", body: strings.Replace(started, "{", `{"colour":{"a":[1]},`, 1)},
		{name: "the right type", subject: "evt.s1.tool.t1-0.started", h: typ("correx.ToolExecutionStarted.v1"), body: started},
		{name: "another type", subject: "evt.s1.tool.t1-0.started", h: typ("correx.ApprovalGranted.v1"), body: started, want: "ce-type"},
		{name: "no version", subject: "evt.s1.tool.t1-0.started", h: typ("correx.ToolExecutionStarted.vx"), body: started, want: "no version"},
		{name: "version nought", subject: "evt.s1.tool.t1-0.started", h: typ("correx.ToolExecutionStarted.v0"), body: started, want: "no version"},
		{name: "of the future", subject: "evt.s1.tool.t1-0.started", h: typ("correx.ToolExecutionStarted.v2"), body: started, want: "knows up to 1", unreadable: true},
		{name: "another session", subject: "evt.s2.tool.t1-0.started", body: started, want: "body is of s1.t1-0"},
		{name: "another id", subject: "evt.s1.tool.t1-1.started", body: started, want: "body is of s1.t1-0"},
		{name: "a route too many", subject: "evt.s1.tool.t1-0.started.shell", body: started, want: "routed"},
		{name: "a route too few", subject: "evt.s1.tool.t1-0.approved", body: `{"session":"s1","id":"t1-0","tool_token":"shell"}`, want: "routed"},
		{name: "no route on either side", subject: "evt.s1.tool.t1-0.approved", body: `{"session":"s1","id":"t1-0"}`, want: "routed"},
		{name: "another route", subject: "evt.s1.tool.t1-0.approved.echo", body: `{"session":"s1","id":"t1-0","tool_token":"shell"}`, want: "routed"},
		{name: "forged by reply", subject: "evt.s1.tool.t1-0.started", h: events.Header{events.HeaderNatsStream: {"EVENTS"}}, body: started, want: "Nats-Stream"},
		{name: "unknown fact", subject: "evt.s1.tool.t1-0.exploded", body: `{}`, want: "no fact is called tool.exploded"},
		{name: "no subject of a fact", subject: "cmd.a.tool.run", body: `{}`, want: "is not evt."},
		{name: "null", subject: "evt.s1.tool.t1-0.started", body: `null`, want: "body is of"},
		{name: "empty", subject: "evt.s1.tool.t1-0.started", body: ``, want: "cannot be decoded", unreadable: true},
		{name: "garbage", subject: "evt.s1.tool.t1-0.completed", body: "\x00\xff", want: "cannot be decoded", unreadable: true},
		{name: "trailing garbage", subject: "evt.s1.tool.t1-0.started", body: started + "}", want: "cannot be decoded", unreadable: true},
		{name: "wrong kind of value", subject: "evt.s1.tool.t1-0.started", body: `{"session":"s1","id":"t1-0","attempt":"one"}`, want: "cannot be decoded", unreadable: true},
		{name: "a tier that is none", subject: "evt.s1.tool.t1-0.rejected", body: `{"session":"s1","id":"t1-0","tier":"T9"}`, want: "cannot be decoded", unreadable: true},
		{name: "too deep", subject: "evt.s1.tool.t1-0.started", body: strings.Repeat("[", 20000), want: "cannot be decoded", unreadable: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := events.Decode(1, instant, c.subject, c.h, []byte(c.body))
			switch {
			case c.want == "" && (r.Err != nil || r.Fact == nil):
				t.Errorf("err = %v", r.Err)
			case c.want != "" && (r.Err == nil || r.Fact != nil || !strings.Contains(r.Err.Error(), c.want)):
				t.Errorf("err = %v, fact = %v, want %q", r.Err, r.Fact, c.want)
			case errors.Is(r.Err, events.ErrUnreadable) != c.unreadable:
				t.Errorf("unreadable = %v: %v", !c.unreadable, r.Err)
			}
			if errors.Is(r.Err, events.ErrForged) != (c.h.Get(events.HeaderNatsStream) != "") {
				t.Errorf("forged: %v", r.Err)
			}
		})
	}
}

// decode reads a command without headers.
func decode(verb, body string) events.Wish {
	return events.DecodeCommand("7-abc", 7, instant, "cmd.operator."+verb, nil, []byte(body))
}

func TestDecodeCommandIsStrict(t *testing.T) {
	for _, c := range []struct{ name, verb, body, want string }{
		{"sound", "session.start", `{"task":"x"}`, ""},
		{"all of it", "session.start", `{"task":"x","limits":{"turns":3},"generation":{"temperature":0.5,"top_p":1,"max_tokens":9,"seed":1},"mode":"auto","tools":["a"]}`, ""},
		{"space around", "session.start", " \n{\"task\":\"x\"}\n ", ""},
		{"unknown field", "session.start", `{"task":"x","colour":1}`, `unknown field "colour"; there are capability, generation`},
		{"unknown and missing", "session.start", `{"tusk":"x"}`, `unknown field "tusk"|task is missing`},
		{"two unknown fields", "session.start", `{"task":"x","b":1,"a":2}`, `unknown field "a"; |unknown field "b"; `},
		{"unknown field within", "session.start", `{"task":"x","limits":{"hours":1}}`, `limits: unknown field "hours"; there are tokens, tool_calls, turns, wall_time_ns`},
		{"unknown field in a list", "inference.request", `{"messages":[{"role":"user","content":"x"},{"role":"user","text":"y"}]}`, `messages[1]: unknown field "text"`},
		{"other case", "tool.approve", `{"invocation":"t1-0","Digest":"d"}`, `unknown field "Digest"; there are digest`},
		{"other case besides", "tool.approve", `{"invocation":"t1-0","digest":"d","DIGEST":"e"}`, `unknown field "DIGEST"`},
		{"twice", "session.start", `{"task":"x","task":"y"}`, `task stands twice`},
		{"twice by escape", "session.start", `{"task":"x","t\u0061sk":"y"}`, `task stands twice`},
		{"twice, deep", "tool.request", `{"tool":"t","parameters":{"a":[{"b":1,"b":2}]}}`, `b stands twice`},
		{"any field in parameters", "tool.request", `{"tool":"t","parameters":{"Session":"x","zzz":{"b":1},"q":{"b":1}}}`, ``},
		{"behind it", "session.start", `{"task":"x"} {}`, `something behind`},
		{"a brace behind it", "session.start", `{"task":"x"}}`, `something behind`},
		{"a bracket behind it", "session.start", `{"task":"x"}]`, `something behind`},
		{"not JSON", "session.start", `task: x`, `not a JSON object`},
		{"list", "session.start", `[{"task":"x"}]`, `not a JSON object`},
		{"null", "session.start", `null`, `not a JSON object`},
		{"empty", "session.start", ``, `not a JSON object`},
		{"cut off", "session.start", `{"task":"x`, `unexpected EOF`},
		{"not UTF-8", "session.start", "{\"task\":\"\xff\"}", `not valid UTF-8`},
		{"wrong type", "session.start", `{"task":7}`, `cannot unmarshal number`},
		{"wrong type and unknown", "session.start", `{"task":7,"x":1}`, `cannot unmarshal number|unknown field "x"`},
		{"half a number", "session.start", `{"task":"x","limits":{"turns":1.5}}`, `cannot unmarshal number 1.5`},
		{"deep", "tool.request", `{"tool":"t","parameters":` + strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20001), `exceeded max depth`},
		{"deep enough", "tool.request", `{"tool":"t","parameters":` + strings.Repeat(`{"a":`, 500) + `1` + strings.Repeat(`}`, 501), ``},
		{"too large", "session.start", `{"task":"` + strings.Repeat("x", events.MaxCommand) + `"}`, `at most 262144 are allowed`},
		{"no task", "session.start", `{}`, `task is missing`},
		{"every fault", "session.start", `{"session":"a b","mode":"yolo","limits":{"turns":-1},"generation":{"temperature":9,"top_p":2,"max_tokens":-1,"seed":0,"top_k":-1,"repeat_penalty":-2,"min_p":-1},"tools":[""],"capability":"MAGIC"}`,
			`session "a b"|task is missing|mode is "yolo"|limits|generation.temperature|generation.top_p|generation.max_tokens|generation.top_k|generation.repeat_penalty|generation.min_p|tools[0] is empty|capability is "MAGIC"`},
		{"a session called system", "session.start", `{"session":"system","task":"x"}`, `no session may be called`},
		{"say nothing", "session.say", `{"session":"s1"}`, `text is missing`},
		{"pause whom", "session.pause", `{}`, `session is empty`},
		{"resume a star", "session.resume", `{"session":"*"}`, `session "*"`},
		{"cancel", "session.cancel", `{"session":"s1","reason":"enough"}`, ``},
		{"fork from nowhere", "session.fork", `{"session":"s1"}`, `at is missing`},
		{"no parameters", "tool.request", `{"tool":"t"}`, `parameters is missing`},
		{"parameters that are no object", "tool.request", `{"tool":"t","parameters":[1]}`, `parameters is not a JSON object`},
		{"no tool", "tool.request", `{"parameters":{},"tier":"T2"}`, `tool is missing`},
		{"a long tool", "tool.request", `{"tool":"` + strings.Repeat("t", 257) + `","parameters":{}}`, `at most 256`},
		{"a tier that is none", "tool.request", `{"tool":"t","parameters":{},"tier":"T7"}`, `not one of T0`},
		{"no digest", "tool.approve", `{"invocation":"t1-0"}`, `digest is missing`},
		{"scope", "tool.approve", `{"invocation":"t1-0","digest":"d","scope":"ever"}`, `scope is "ever"`},
		{"reject nothing", "tool.reject", `{}`, `invocation is empty`},
		{"cancel nothing", "tool.cancel", `{"session":"s1"}`, `invocation is empty`},
		{"neither", "inference.request", `{}`, `exactly one`},
		{"both", "inference.request", `{"task":"x","messages":[{"role":"user","content":"x"}]}`, `exactly one`},
		{"role", "inference.request", `{"messages":[{"role":"tool","content":"x"}]}`, `messages[0].role`},
		{"no model", "model.load", `{}`, `model is missing`},
		{"drain and force", "model.unload", `{"model":"m","drain":true,"force":true}`, `at most one`},
		{"verb", "session.destroy", `{}`, `no command is called "session.destroy"; there are inference.request, `},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := decode(c.verb, c.body)
			all := strings.Join(w.Faults, "\n")
			if c.want == "" {
				if all != "" || w.Command == nil || w.Command.Verb() != w.Verb {
					t.Errorf("faults = %s", all)
				}
				return
			}
			if w.Command != nil || all == "" {
				t.Errorf("was taken on: %+v", w.Command)
			}
			for _, want := range strings.Split(c.want, "|") {
				if !strings.Contains(all, want) {
					t.Errorf("faults = %q, want %q", all, want)
				}
			}
		})
	}
}

func TestDecodeCommandReadsSubjectAndEnvelope(t *testing.T) {
	structured := events.Header{"Content-Type": {"application/cloudevents+json; charset=utf-8"}}
	for _, c := range []struct {
		name, subject string
		h             events.Header
		body, want    string
	}{
		{"structured", "cmd.op.session.start", structured, `{"specversion":"1.0","id":"1","type":"x","source":"y","data":{"task":"x"}}`, ""},
		{"structured, bad data", "cmd.op.session.start", structured, `{"specversion":"1.0","data":{"tusk":"x"}}`, `unknown field "tusk"`},
		{"structured, two data", "cmd.op.session.start", structured, `{"data":{"task":"x"},"data":{"task":"y"}}`, `data stands twice`},
		{"structured, no data", "cmd.op.session.start", structured, `{"specversion":"1.0"}`, `unknown field "specversion"`},
		{"batch", "cmd.op.session.start", events.Header{"Content-Type": {"application/cloudevents-batch+json"}}, `[{"data":{"task":"x"}}]`, "not a JSON object"},
		{"plain JSON", "cmd.op.session.start", events.Header{"Content-Type": {"application/json"}}, `{"task":"x"}`, ""},
		{"forged", "cmd.op.session.start", events.Header{events.HeaderNatsStream: {"EVENTS"}}, `{"task":"x"}`, "Nats-Stream"},
		{"an actor that is none", "cmd.a b.session.start", nil, `{"task":"x"}`, "actor"},
		{"too short", "cmd.op.session", nil, `{}`, "is not cmd."},
		{"too long", "cmd.op.session.start.now", nil, `{}`, "is not cmd."},
		{"another prefix", "api.op.session.start", nil, `{}`, "is not cmd."},
	} {
		w := events.DecodeCommand("7-abc", 7, instant, c.subject, c.h, []byte(c.body))
		if all := strings.Join(w.Faults, "\n"); c.want == "" && all != "" || !strings.Contains(all, c.want) || (w.Command == nil) == (c.want == "") {
			t.Errorf("%s: faults = %q, command = %v", c.name, all, w.Command)
		}
		if w.ID != "7-abc" || w.Seq != 7 || w.Subject != c.subject {
			t.Errorf("%s: wish = %+v", c.name, w)
		}
	}
	if s, err := events.CommandSubject("op", "tool.approve"); err != nil || s != "cmd.op.tool.approve" {
		t.Errorf("subject = %q, %v", s, err)
	}
	if _, err := events.CommandSubject("o.p", "tool.approve"); err == nil {
		t.Error("an actor of two tokens passes")
	}
}
