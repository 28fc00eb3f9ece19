package session

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"correx/pkg/events"
)

// A Prompt is what a model is told.
type Prompt struct {
	Messages []events.ChatMessage
	Cut      int    // L2 entries that were left out, oldest first
	Digest   string // SHA-256 of the messages as JSON
}

// ErrOverflow says that what may not be cut is over the window already.
type ErrOverflow struct{ Tokens, Window int }

func (e *ErrOverflow) Error() string {
	return fmt.Sprintf("system prompt, example and task are %d tokens long, the model has room for %d; shorten the task or take a model with a larger context", e.Tokens, e.Window)
}

// Pack makes the prompt of an inference from its session as it was at
// f.Through, the offers that f names, the room for it in tokens, and a function
// that counts. L0 is the system prompt with the tools, L1 a worked example as
// real turns and the task, L2 what has happened since: what the model said as
// assistant, tool results and people as user. Over the window, the oldest L2
// entries go first and a marker stands in their place; L0 and L1 never go.
//
// It is pure: whoever has the log can pack the same prompt again.
func Pack(s State, offers []events.ToolOffer, f events.InferenceRequested, window int, count func([]events.ChatMessage) int) (Prompt, error) {
	if len(f.Messages) > 0 || s.Started == nil {
		return fixed(f.Messages, window, count)
	}
	open := offered(offers, f.Withdrawn, f.FinalOnly)
	head := []events.ChatMessage{{Role: events.RoleSystem, Content: systemText(s.Started.System, offers, f.Guided)}}
	head = append(head, examplesFor(s, f, offers)...)
	head = append(head, events.ChatMessage{Role: events.RoleUser, Content: neutral(s.Started.Task)})
	history := historyOf(s, f)
	var tail []events.ChatMessage
	if len(open) == 0 && len(offers) > 0 && !f.Guided {
		tail = append(tail, user("Say in one sentence what was done."))
	} else if n := len(history); n > 0 && history[n-1].Role == events.RoleAssistant {
		tail = append(tail, user("Go on.")) // a grammar needs a turn of its own to answer in
	}
	build := func(cut int) []events.ChatMessage {
		return merge(slices.Concat(head, marked(history, cut), tail))
	}
	return fit(build, len(history), window, count)
}

// fit returns the prompt with the fewest of n entries cut that fits. Counting may
// cost a request each, so the number is searched for by halves.
func fit(build func(cut int) []events.ChatMessage, n, window int, count func([]events.ChatMessage) int) (Prompt, error) {
	if msgs := build(0); count(msgs) <= window {
		return prompt(msgs, 0), nil
	}
	cut := min(n, 1+sort.Search(max(n-1, 0), func(k int) bool { return count(build(k+1)) <= window }))
	msgs := build(cut)
	if size := count(msgs); size > window {
		return Prompt{}, &ErrOverflow{size, window}
	}
	return prompt(msgs, cut), nil
}

// fixed packs the messages of an inference of no session; none at all are one
// empty user message.
func fixed(msgs []events.ChatMessage, window int, count func([]events.ChatMessage) int) (Prompt, error) {
	if len(msgs) == 0 {
		msgs = []events.ChatMessage{{Role: events.RoleUser}}
	}
	if n := count(msgs); n > window {
		return Prompt{}, &ErrOverflow{n, window}
	}
	return prompt(msgs, 0), nil
}

func prompt(msgs []events.ChatMessage, cut int) Prompt {
	text, err := json.Marshal(msgs)
	if err != nil { // strings always encode
		text = nil
	}
	sum := sha256.Sum256(text)
	return Prompt{Messages: msgs, Cut: cut, Digest: hex.EncodeToString(sum[:])}
}

func marked(history []events.ChatMessage, cut int) []events.ChatMessage {
	if cut == 0 {
		return history
	}
	marker := user(fmt.Sprintf("[%d earlier entries were left out]", cut))
	return append([]events.ChatMessage{marker}, history[min(cut, len(history)):]...)
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
	b.WriteString(own)
	if guided { // a small model takes the first tool that is named, whatever it is for
		return b.String()
	}
	for k, o := range exampleFirst(offers) {
		if k == 0 {
			b.WriteString("\n\nTools:")
		}
		b.WriteString("\n- " + o.Name)
		if o.Example != nil {
			b.WriteString(" " + string(o.Example.Parameters))
		}
		b.WriteString(": " + neutral(o.Description))
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

// controlTokens are what templates give a meaning that text must not have.
var controlTokens = strings.NewReplacer("<|", "< |", "|>", "| >", "<｜", "< ｜", "｜>", "｜ >", "<s>", "< s>", "</s>", "< /s>",
	"[INST]", "[ INST]", "[/INST]", "[ /INST]", "<<SYS>>", "<< SYS>>", "<</SYS>>", "<< /SYS>>",
	"<bos>", "< bos>", "<eos>", "< eos>", "<start_of_turn>", "< start_of_turn>", "<end_of_turn>", "< end_of_turn>")

// neutral makes control tokens of templates harmless in text that others wrote.
func neutral(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for {
		t := controlTokens.Replace(s)
		if t == s {
			return s
		}
		s = t // "<|>" holds two that overlap
	}
}
