package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"correx/internal/schema"
	"correx/internal/session"
	"correx/pkg/events"
)

func TestActionSchemaHasOneBranchForEachToolAndOneForTheAnswer(t *testing.T) {
	offers := exampleOffers()
	for _, c := range []struct {
		name      string
		withdrawn []string
		finalOnly bool
		want      []string
	}{
		{"all", nil, false, []string{"write", "read", "echo", "final"}},
		{"one withdrawn", []string{"read"}, false, []string{"write", "echo", "final"}},
		{"all withdrawn", []string{"read", "echo", "write"}, false, []string{"final"}},
		{"last turn", nil, true, []string{"final"}},
	} {
		text := session.ActionSchema(offers, c.withdrawn, c.finalOnly)
		if err := schema.Check(text); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var s struct {
			OneOf []struct {
				Properties map[string]struct {
					Const string `json:"const"`
				} `json:"properties"`
			} `json:"oneOf"`
		}
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range s.OneOf {
			if n := b.Properties["name"].Const; n != "" {
				got = append(got, n)
			} else {
				got = append(got, b.Properties["kind"].Const)
			}
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: branches %v", c.name, got)
		}
	}
}

// The order of properties is the order in which a model writes them: the kind
// decides the branch, so it comes first, then the name, then the arguments, and
// those in the order of the tool's own schema.
func TestActionSchemaKeepsTheOrderOfProperties(t *testing.T) {
	text := string(session.ActionSchema([]events.ToolOffer{{Name: `q"t`, Schema: events.Raw(`{"type":"object","properties":{"z":{},"a":{}}}`)}}, nil, false))
	at := -1
	for _, part := range []string{`"kind":{"const":"tool"}`, `"name":{"const":"q\"t"}`, `"arguments":{`, `"z":{}`, `"a":{}`, `"kind":{"const":"final"}`, `"text":{`} {
		next := strings.Index(text, part)
		if next <= at {
			t.Errorf("%s is at %d, behind %d, in %s", part, next, at, text)
		}
		at = next
	}
}

func TestWhatAModelWouldWriteIsAnActionByItsSchema(t *testing.T) {
	offers := exampleOffers()
	s := session.ActionSchema(offers, nil, false)
	for _, o := range offers {
		call := session.Call(o.Name, o.Example.Parameters)
		if err := schema.Validate(s, events.Raw(call)); err != nil {
			t.Errorf("%s: %v", call, err)
		}
		r, err := session.ParseReply(call, offers, nil, false)
		if err != nil || len(r.Calls) != 1 || r.Calls[0].Tool != o.Name || string(r.Calls[0].Arguments) != string(o.Example.Parameters) || r.Final != nil {
			t.Errorf("%s was read as %+v, %v", call, r, err)
		}
	}
	final := session.Final("<b> \"done\" é")
	if err := schema.Validate(s, events.Raw(final)); err != nil {
		t.Error(err)
	}
	if r, err := session.ParseReply(final, offers, nil, true); err != nil || r.Final == nil || *r.Final != "<b> \"done\" é" || r.Text != final {
		t.Errorf("%s was read as %+v, %v", final, r, err)
	}
}

func TestParseReply(t *testing.T) {
	const call = `{"kind":"tool","name":"echo","arguments":{"text":"a"}}`
	for _, c := range []struct{ name, text, want string }{
		{"plain", call, ""},
		{"space", "\n " + call + "\n", ""},
		{"fenced", "```json\n" + call + "\n```", ""},
		{"fenced without a name", "```\n" + call + "\n```", ""},
		{"fence left open", "```json\n" + call, ""},
		{"number kept", `{"kind":"tool","name":"big","arguments":{"n":9007199254740993}}`, ""},
		{"empty", "", "not an action"},
		{"prose", "I would call echo.", "not an action"},
		{"cut off", call[:len(call)-3], "not an action"},
		{"prose behind", call + " Done!", "something behind"},
		{"brace behind", call + "}", "something behind"},
		{"two actions", call + call, "something behind"},
		{"unknown field", `{"kind":"final","text":"x","mood":"good"}`, `unknown field "mood"`},
		{"no kind", `{"name":"echo","arguments":{}}`, "use tool or final"},
		{"empty answer", `{"kind":"final","text":" "}`, "no text"},
		{"no answer", `{"kind":"final"}`, "no text"},
		{"unknown tool", `{"kind":"tool","name":"rm","arguments":{}}`, `"rm" is not on offer`},
		{"withdrawn tool", `{"kind":"tool","name":"read","arguments":{"path":"x"}}`, `"read" is not on offer`},
		{"wrong arguments", `{"kind":"tool","name":"echo","arguments":{"text":1}}`, "arguments of echo: text is number, not string"},
		{"no arguments", `{"kind":"tool","name":"echo"}`, "arguments of echo"},
		{"null arguments", `{"kind":"tool","name":"echo","arguments":null}`, "arguments of echo"},
	} {
		offers := append(exampleOffers(), events.ToolOffer{Name: "big", Schema: events.Raw(`{"type":"object"}`)})
		r, err := session.ParseReply(c.text, offers, []string{"read"}, false)
		switch {
		case c.want == "" && (err != nil || len(r.Calls) != 1):
			t.Errorf("%s: %+v, %v", c.name, r, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(r.Calls) > 0 || r.Final != nil):
			t.Errorf("%s: %+v, %v; want %q", c.name, r, err, c.want)
		case c.name == "number kept" && string(r.Calls[0].Arguments) != `{"n":9007199254740993}`:
			t.Errorf("arguments = %s", r.Calls[0].Arguments)
		case r.Text != c.text:
			t.Errorf("%s: text was changed to %q", c.name, r.Text)
		}
	}
	if _, err := session.ParseReply(call, exampleOffers(), nil, true); err == nil {
		t.Error("a call in the last turn passes")
	}
}
