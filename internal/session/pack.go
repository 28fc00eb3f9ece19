package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"correx/pkg/events"
)

// PackVersion says how prompts are laid out. It is one more whenever the same
// session gives other messages than before, so that whoever packs an old prompt
// again knows why it differs.
const PackVersion = 1

// A Prompt is what a model is told.
type Prompt struct {
	Messages []events.ChatMessage
	Loss
	Digest string // SHA-256 of the messages as JSON
}

// ErrOverflow says that what may not be cut is over the window already.
type ErrOverflow struct{ Tokens, Window int }

func (e *ErrOverflow) Error() string {
	return fmt.Sprintf("system prompt, example and task are %d tokens long, the model has room for %d; shorten the task or take a model with a larger context", e.Tokens, e.Window)
}

// A Room is what a prompt has to fit.
type Room struct {
	Window   int                            // tokens
	Count    func([]events.ChatMessage) int // tokens of messages, in the model's template
	NoSystem bool                           // that template has no turns of the system
}

// Pack makes the prompt of an inference from its session as it was at
// f.Through, the offers that f names, and the room for it. L0 is the system prompt with the tools, L1 a worked example as
// real turns and the task, L2 what has happened since: what the model said as
// assistant, tool results and people as user. Over the window, L2 loses as little
// as will do, see [Loss]; L0, L1 and what was asked for last lose nothing.
//
// It is pure: whoever has the log can pack the same prompt again, see [Repack].
func Pack(s State, offers []events.ToolOffer, f events.InferenceRequested, room Room) (Prompt, error) {
	if len(f.Messages) > 0 || s.Started == nil {
		return fixed(f.Messages, room)
	}
	return layoutOf(s, offers, f).fit(room)
}

// Repack makes the prompt of an inference that was packed before, by what it
// lost then. No window and no tokenizer is needed for it.
func Repack(s State, offers []events.ToolOffer, f events.InferenceRequested, lost Loss) Prompt {
	if len(f.Messages) > 0 || s.Started == nil {
		return prompt(given(f.Messages, lost), lost)
	}
	l := layoutOf(s, offers, f)
	return prompt(l.build(lost), lost)
}

// layoutOf lays a prompt out.
func layoutOf(s State, offers []events.ToolOffer, f events.InferenceRequested) layout {
	open := offered(offers, f.Withdrawn, f.FinalOnly)
	l := layout{history: historyOf(s, f), most: maxResult}
	if f.Guided {
		l.most = maxGuidedResult
	}
	l.head = []events.ChatMessage{{Role: events.RoleSystem, Content: systemText(s.Started.System, offers, f.Guided)}}
	l.head = append(l.head, neutralised(examplesFor(s, f, offers))...)
	l.head = append(l.head, user(neutral(s.Started.Task)))
	if len(open) == 0 && len(offers) > 0 && !f.Guided {
		l.tail = append(l.tail, user("Say in one sentence what was done."))
	} else if n := len(l.history); n > 0 && l.history[n-1].role == events.RoleAssistant {
		l.tail = append(l.tail, user("Go on.")) // a grammar needs a turn of its own to answer in
	}
	return l
}

// fixed packs the messages of an inference of no session.
func fixed(msgs []events.ChatMessage, room Room) (Prompt, error) {
	lost := Loss{Merged: room.NoSystem}
	msgs = given(msgs, lost)
	if n := room.Count(msgs); n > room.Window {
		return Prompt{}, &ErrOverflow{n, room.Window}
	}
	return prompt(msgs, lost), nil
}

// given are messages as they came, control tokens made harmless but in what the
// system says; none at all are one empty user message.
func given(msgs []events.ChatMessage, lost Loss) []events.ChatMessage {
	if len(msgs) == 0 {
		return []events.ChatMessage{{Role: events.RoleUser}}
	}
	msgs = neutralised(msgs)
	if lost.Merged && slices.ContainsFunc(msgs, func(m events.ChatMessage) bool { return m.Role == events.RoleSystem }) {
		return withoutSystem(msgs)
	}
	return msgs
}

func prompt(msgs []events.ChatMessage, lost Loss) Prompt {
	text, err := json.Marshal(msgs)
	if err != nil { // strings always encode
		text = nil
	}
	sum := sha256.Sum256(text)
	return Prompt{Messages: msgs, Loss: lost, Digest: hex.EncodeToString(sum[:])}
}

// merge joins neighbours of one role: many templates demand that they alternate.
func merge(msgs []events.ChatMessage) []events.ChatMessage {
	var out []events.ChatMessage
	for _, m := range msgs {
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Content += "\n\n" + m.Content
			continue
		}
		out = append(out, m)
	}
	return out
}

// withoutSystem has the user say what the system would.
func withoutSystem(msgs []events.ChatMessage) []events.ChatMessage {
	msgs = slices.Clone(msgs)
	for k := range msgs {
		if msgs[k].Role == events.RoleSystem {
			msgs[k].Role = events.RoleUser
		}
	}
	return merge(msgs)
}

func user(text string) events.ChatMessage {
	return events.ChatMessage{Role: events.RoleUser, Content: text}
}

// defaultSystem is short on purpose: the more it explains, the sooner a small
// model explains too instead of acting.
const defaultSystem = "You do the user's task with tools, one at a time, and then answer."

// systemText names the tools, each with a call as it looks and what it is for,
// in the order of the worked example.
func systemText(own string, offers []events.ToolOffer, guided bool) string {
	var b strings.Builder
	if own == "" {
		own = defaultSystem
	}
	b.WriteString(strings.ToValidUTF8(own, "\uFFFD"))
	if guided { // a small model takes the first tool that is named, whatever it is for
		return b.String()
	}
	for k, o := range exampleFirst(offers) {
		if k == 0 {
			b.WriteString("\n\nTools:")
		}
		line := "\n- " + o.Name
		if o.Example != nil {
			line += " " + string(o.Example.Parameters)
		}
		b.WriteString(neutral(line + ": " + o.Description))
	}
	return b.String()
}

// exampleFirst orders offers: those of the worked example, then the others.
func exampleFirst(offers []events.ToolOffer) []events.ToolOffer {
	chain := exampleChain(offers)
	rank := func(o events.ToolOffer) int {
		if k := slices.IndexFunc(chain, func(s sample) bool { return s.tool == o.Name }); k >= 0 {
			return k
		}
		return len(chain)
	}
	return slices.SortedStableFunc(slices.Values(offers), func(a, b events.ToolOffer) int { return rank(a) - rank(b) })
}
