package session_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"correx/internal/session"
)

// note prints what each key waits for, when that has changed.
func (s *sim) note() {
	s.out.WriteString(s.print(s.printed))
	s.printed = len(s.log.recs)
	for _, k := range s.order {
		r := session.React(s.states[k], s.world, s.now)
		text := ""
		if r.Waiting != "" {
			text = fmt.Sprintf("~ %s waits for %s", k.Session, r.Waiting)
			if !r.Wake.IsZero() {
				text += "; looks again at " + s.offset(r.Wake)
			}
		}
		if text != s.noted[k] && text != "" {
			s.out.WriteString(text + "\n")
		}
		s.noted[k] = text
	}
}

func (s *sim) offset(t time.Time) string { return "+" + t.Sub(epoch).String() }

// print returns the records from index n on, one a line.
func (s *sim) print(n int) string {
	var b strings.Builder
	for _, r := range s.log.recs[max(n, 0):] {
		fmt.Fprintf(&b, "#%d %s %s%s\n", r.Seq, s.offset(r.Time), strings.TrimPrefix(r.Subject, "evt."), fields(r.Data))
	}
	return b.String()
}

// hidden are fields that say nothing new in a golden log.
var hidden = map[string]bool{
	"session": true, "id": true, "now": true, "decided_at": true, "session_id": true, "invocation_id": true, "actor": true,
	"key": true, "signature": true, "host": true, "pid": true, "version": true, "tool_token": true, "model_token": true,
	"policy_version": true, "offer_digest": true, "timestamp": true, "boot": true, "schema": true, "description": true, "token": true,
	"world_at": true, "settings": true,
}

// onlyOne begins the routing of an inference for which there was one model.
const onlyOne = `{rule="only"`

// fields prints a body's fields in their order, without those that are hidden or
// say nothing.
func fields(body []byte) string {
	var b strings.Builder
	dec := json.NewDecoder(strings.NewReader(string(body)))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return " " + string(body)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return " " + string(body)
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return " " + string(body)
		}
		if text := value(v); text != "" && !hidden[key.(string)] && !strings.HasPrefix(text, onlyOne) {
			fmt.Fprintf(&b, " %s=%s", key, text)
		}
	}
	return b.String()
}

func value(v json.RawMessage) string {
	switch string(v) {
	case `""`, "0", "false", "null", "{}", "[]":
		return ""
	}
	var text string
	if json.Unmarshal(v, &text) == nil {
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return "+" + t.Sub(epoch).String()
		}
		if len(text) == 64 && !strings.Contains(text, " ") {
			return text[:8]
		}
		if strings.HasPrefix(text, `{"kind"`) {
			return "" // a reply as generated; its parts stand beside it
		}
		return string(v)
	}
	if v[0] == '{' {
		if inner := strings.TrimSpace(fields(v)); inner == "" {
			return ""
		} else {
			return "{" + inner + "}"
		}
	}
	if v[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(v, &list) == nil {
			var parts []string
			for _, e := range list {
				parts = append(parts, value(e))
			}
			return "[" + strings.Join(parts, " ") + "]"
		}
	}
	return string(v)
}
