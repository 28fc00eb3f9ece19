package events

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

// A payload whose shape changes gets a version; what was written before is read
// through one step a version.
func TestOldVersionsAreReadThroughUpcasters(t *testing.T) {
	const name = FactName("session.message")
	old := factTypes[name]
	typ := old
	typ.Version = 3
	factTypes[name] = typ
	defer func() { factTypes[name] = old; delete(upcasters, name) }()
	read := func(ceType, body string) Record {
		return Decode(1, time.Time{}, "evt.s1.session.main.message", Header{HeaderType: {ceType}}, []byte(body))
	}
	upcasters[name] = map[int]upcaster{1: func(b json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.Replace(string(b), `"said"`, `"words"`, 1)), nil
	}}
	const first = `{"session":"s1","id":"main","role":"user","said":"hi"}`
	if r := read("correx.MessageAdded.v1", first); !errors.Is(r.Err, ErrUnreadable) || !strings.Contains(r.Err.Error(), "from version 2 to 3") {
		t.Errorf("without the second step: %v", r.Err)
	}
	upcasters[name][2] = func(b json.RawMessage) (json.RawMessage, error) {
		if !strings.Contains(string(b), `"words"`) {
			return nil, errors.New("no words")
		}
		return json.RawMessage(strings.Replace(string(b), `"words"`, `"text"`, 1)), nil
	}
	for ceType, body := range map[string]string{
		"correx.MessageAdded.v1": first,
		"correx.MessageAdded.v2": strings.Replace(first, "said", "words", 1),
		"correx.MessageAdded.v3": strings.Replace(first, "said", "text", 1),
		"":                       strings.Replace(first, "said", "text", 1), // no envelope: the newest
	} {
		r := read(ceType, body)
		if m, ok := r.Fact.(MessageAdded); !ok || m.Text != "hi" || string(r.Data) != body {
			t.Errorf("%s: %+v, %v; data %s", ceType, r.Fact, r.Err, r.Data)
		}
	}
	if r := read("correx.MessageAdded.v2", first); !errors.Is(r.Err, ErrUnreadable) || !strings.Contains(r.Err.Error(), "no words") {
		t.Errorf("a step that fails: %v", r.Err)
	}
	if r := read("correx.MessageAdded.v4", first); !errors.Is(r.Err, ErrUnreadable) {
		t.Errorf("of the future: %v", r.Err)
	}
}
