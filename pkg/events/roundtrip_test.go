package events_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"correx/pkg/events"
)

func encode(t testing.TB, f events.Fact, after uint64) (string, events.Header, []byte) {
	t.Helper()
	subject, h, data, err := events.Encode(f, events.Source{Name: "tool-worker/w 1", Cause: "command/7-abc"}, after, instant)
	if err != nil {
		t.Fatal(err)
	}
	return subject, h, data
}

func TestEveryFactComesBackAsItWent(t *testing.T) {
	for _, typ := range events.FactTypes() {
		t.Run(string(typ.Name), func(t *testing.T) {
			f := filled(typ)
			subject, h, data := encode(t, f, 7)
			r := events.Decode(9, instant, subject, h, data)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if !reflect.DeepEqual(r.Fact, f) {
				t.Errorf("came back as\n%+v\nwent as\n%+v", r.Fact, f)
			}
			if r.Seq != 9 || r.Subject != subject || r.Aggregate != events.AggregateOf(f) || !r.Time.Equal(instant) {
				t.Errorf("record is %+v", r)
			}
			if again, _, data2 := encode(t, r.Fact, 7); again != subject || !bytes.Equal(data2, data) {
				t.Errorf("the second time it is %s %s", again, data2)
			}
			if bytes.Contains(data, []byte("9007199254740993")) && !bytes.Contains(data, []byte(raw)) {
				t.Errorf("raw JSON was changed: %s", data)
			}
			if strings.Contains(string(data), `\u003c`) {
				t.Errorf("< was escaped: %s", data)
			}
		})
	}
}

func TestFactsThatCarryRawKeepEveryByte(t *testing.T) {
	// A Raw in a request, in a reply, in a receipt, in an offer, in a policy.
	for _, name := range []events.FactName{"tool.requested", "inference.completed", "tool.completed", "tool.failed", "worker.started"} {
		typ, _ := events.LookupFact(name)
		if _, _, data := encode(t, filled(typ), 0); !bytes.Contains(data, []byte(raw)) {
			t.Errorf("%s: %s", name, data)
		}
	}
}

func TestRawDropsOnlyInsignificantSpace(t *testing.T) {
	var r events.Raw
	if err := json.Unmarshal([]byte(" {\n \"a\" : [ 1.0 , \" x \" ] } "), &r); err != nil {
		t.Fatal(err)
	}
	if string(r) != `{"a":[1.0," x "]}` {
		t.Errorf("raw = %s", r)
	}
	if text, err := json.Marshal(struct{ R events.Raw }{}); err != nil || string(text) != `{"R":null}` {
		t.Errorf("empty = %s, %v", text, err)
	}
	for _, bad := range []string{"", "[]", "1", "null", `{"a":}`, `{}{}`} {
		if events.Raw(bad).Object() == nil {
			t.Errorf("%q passes for an object", bad)
		}
	}
	if err := events.Raw(" {} ").Object(); err != nil {
		t.Error(err)
	}
}

func TestEveryCommandComesBackAsItWent(t *testing.T) {
	for _, c := range events.CommandTypes() {
		p := reflect.New(reflect.TypeOf(c))
		fill(p.Elem())
		data, err := events.EncodeCommand(p.Elem().Interface().(events.Command))
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(c))
		if err := json.Unmarshal(data, got.Interface()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Elem().Interface(), p.Elem().Interface()) {
			t.Errorf("%s came back as %+v", c.Verb(), got.Elem())
		}
		w := decode(string(c.Verb()), string(data))
		for _, f := range w.Faults { // its values are nonsense, its fields are not
			if strings.Contains(f, "unknown field") || strings.Contains(f, "twice") || strings.HasPrefix(f, "body") {
				t.Errorf("%s: %s", c.Verb(), f)
			}
		}
	}
}

func TestEnvelopeIsCloudEvents(t *testing.T) {
	typ, _ := events.LookupFact("tool.approved")
	subject, h, _ := encode(t, filled(typ), 41)
	if subject != "evt.s1.tool.x1.approved.tok" {
		t.Errorf("subject = %s", subject)
	}
	for name, want := range map[string]string{
		events.HeaderID: "s1.tool.x1+41", events.HeaderType: "correx.ApprovalGranted.v1", events.HeaderSource: "/correx/tool-worker/w%201",
		events.HeaderTime: "2026-02-03T04:05:06.789012345Z", events.HeaderSpecVersion: "1.0", events.HeaderDataSchema: "correx:tool.approved:1",
		events.HeaderCorrelation: "s1", events.HeaderCausation: "command/7-abc",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	trace := strings.Split(h.Get(events.HeaderTraceparent), "-")
	if len(trace) != 4 || trace[0] != "00" || len(trace[1]) != 32 || len(trace[2]) != 16 {
		t.Errorf("traceparent = %v", trace)
	}
	if _, other, _ := encode(t, filled(typ), 42); strings.Split(other.Get(events.HeaderTraceparent), "-")[1] != trace[1] || other.Get(events.HeaderTraceparent) == h.Get(events.HeaderTraceparent) {
		t.Error("facts of one session are not spans of one trace")
	}
	for text, want := range map[string]string{"a%20b": "a b", "100%": "100%", "": ""} {
		if got := events.HeaderText(text); got != want {
			t.Errorf("HeaderText(%q) = %q", text, got)
		}
	}
}

func TestEncodeRefusesWhatTheWireCannotCarry(t *testing.T) {
	big := events.MessageAdded{Ref: events.Ref{Session: "s1", ID: "main"}, Text: strings.Repeat("x", events.MaxFact)}
	if _, _, _, err := events.Encode(big, events.Source{}, 0, time.Time{}); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("error = %v", err)
	}
	for _, f := range []events.Fact{
		events.MessageAdded{},
		events.MessageAdded{Ref: events.Ref{Session: "s 1", ID: "main"}},
		events.MessageAdded{Ref: events.Ref{Session: "s1", ID: "*"}},
		events.ApprovalGranted{Ref: events.Ref{Session: "s1", ID: "t1-0"}, Token: "a.b"},
		events.ToolInvocationRequested{Ref: events.Ref{Session: "s1", ID: "t1-0"}, Token: "x", Request: events.ToolRequest{Parameters: events.Raw("{")}},
		events.ToolInvocationRequested{Ref: events.Ref{Session: "s1", ID: "t1-0"}, Token: "x", Tier: 9},
	} {
		if subject, _, data, err := events.Encode(f, events.Source{}, 0, time.Time{}); err == nil {
			t.Errorf("%+v was encoded: %s %s", f, subject, data)
		}
	}
}
