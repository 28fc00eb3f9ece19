package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"correx/internal/schema"
	"correx/pkg/events"
)

// MaxFinal bounds the text of a final answer, in characters: small models fall
// into endless text.
const MaxFinal = 800

// maxGuidedFinal is the same for a model that is guided.
const maxGuidedFinal = 300

// An action is what a model says in one turn when it is constrained: one tool
// call, or the final answer.
type action struct {
	Kind      string     `json:"kind"`
	Name      string     `json:"name,omitempty"`
	Arguments events.Raw `json:"arguments,omitempty"`
	Text      *string    `json:"text,omitempty"`
}

// ActionSchema returns the JSON Schema of the action that a model may take: one
// branch for each tool on offer that is not withdrawn, one for the final answer.
// The order of properties is the order of generation, so the text is built, not
// marshalled from maps.
func ActionSchema(offers []events.ToolOffer, withdrawn []string, finalOnly bool) events.Raw {
	return actionSchema(offered(exampleFirst(offers), withdrawn, finalOnly), MaxFinal)
}

// actionSchema has a branch for each of the offers, and one for an answer of at
// most so many characters; 0: none.
func actionSchema(offers []events.ToolOffer, final int) events.Raw {
	var b strings.Builder
	b.WriteString(`{"oneOf":[`)
	for k, o := range offers {
		if k > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"object","properties":{"kind":{"const":"tool"},"name":{"const":%s},"arguments":%s},`+
			`"required":["kind","name","arguments"],"additionalProperties":false}`, quote(o.Name), o.Schema)
	}
	if final > 0 {
		if len(offers) > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"type":"object","properties":{"kind":{"const":"final"},"text":{"type":"string","minLength":1,"maxLength":%d}},`+
			`"required":["kind","text"],"additionalProperties":false}`, final)
	}
	b.WriteString("]}")
	return events.Raw(b.String())
}

// answerSchema leaves only an answer, of a pattern if there is one.
func answerSchema(pattern string) events.Raw {
	if pattern == "" {
		return actionSchema(nil, maxGuidedFinal)
	}
	return events.Raw(`{"type":"object","properties":{"kind":{"const":"final"},"text":{"type":"string","pattern":` + quote(pattern) +
		`}},"required":["kind","text"],"additionalProperties":false}`)
}

func offered(offers []events.ToolOffer, withdrawn []string, finalOnly bool) []events.ToolOffer {
	var out []events.ToolOffer
	for _, o := range offers {
		shut := finalOnly
		for _, w := range withdrawn {
			shut = shut || w == o.Name
		}
		if !shut {
			out = append(out, o)
		}
	}
	return out
}

// Call returns the action that calls a tool, as a model would write it.
func Call(tool string, args events.Raw) string {
	return `{"kind":"tool","name":` + quote(tool) + `,"arguments":` + string(args) + `}`
}

// Final returns the action that gives an answer, as a model would write it.
func Final(text string) string { return `{"kind":"final","text":` + quote(text) + `}` }

// ParseReply reads a constrained reply and holds it against the schemas of what
// is on offer. Its errors are for a model, and for the person who reads why a
// model failed.
func ParseReply(text string, offers []events.ToolOffer, withdrawn []string, finalOnly bool) (events.Reply, error) {
	reply := events.Reply{Text: text}
	var a action
	plain := unfenced(text)
	dec := json.NewDecoder(strings.NewReader(plain))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&a); err != nil {
		return reply, fmt.Errorf("reply is not an action: %w", err)
	}
	if strings.TrimSpace(plain[dec.InputOffset():]) != "" {
		return reply, errors.New("reply has something behind the action")
	}
	switch a.Kind {
	case "final":
		if a.Text == nil || strings.TrimSpace(*a.Text) == "" {
			return reply, errors.New("final answer has no text")
		}
		reply.Final = a.Text
		return reply, nil
	case "tool":
		for _, o := range offered(offers, withdrawn, finalOnly) {
			if o.Name != a.Name {
				continue
			}
			if err := schema.Validate(o.Schema, a.Arguments); err != nil {
				return reply, fmt.Errorf("arguments of %s: %w", a.Name, err)
			}
			reply.Calls = []events.ToolCall{{Tool: a.Name, Arguments: a.Arguments}}
			return reply, nil
		}
		return reply, fmt.Errorf("tool %q is not on offer", a.Name)
	}
	return reply, fmt.Errorf("kind is %s; use tool or final", strconv.Quote(a.Kind))
}

// unfenced drops the code fence that llama-server's grammar lets a model put
// around its answer.
func unfenced(text string) string {
	t := strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(t, "```")
	if !ok {
		return t
	}
	rest = strings.TrimPrefix(rest, "json")
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
