package llama

import (
	"context"
	"log/slog"
	"net/http"

	"correx/pkg/events"
)

// A Tokenizer counts tokens by a llama-server. Where that does not answer, it
// estimates and logs a warning; it never fails.
type Tokenizer struct {
	client *Client
	Logger *slog.Logger // nil: slog.Default
}

// Tokenize returns the tokens of text, without the special ones that a template
// adds and with those spelled out in text taken as plain text. Exact is false
// when the server did not answer: the list is then nil.
func (t *Tokenizer) Tokenize(ctx context.Context, text string) (tokens []int, exact bool) {
	in := struct {
		Content      string `json:"content"`
		AddSpecial   bool   `json:"add_special"`
		ParseSpecial bool   `json:"parse_special"`
	}{Content: text}
	var out struct {
		Tokens []int `json:"tokens"`
	}
	if err := t.client.call(ctx, http.MethodPost, "/tokenize", in, &out); err != nil {
		t.warn(err)
		return nil, false
	}
	return out.Tokens, true
}

// Count returns the number of tokens of text; exact is false for an estimate.
func (t *Tokenizer) Count(ctx context.Context, text string) (n int, exact bool) {
	tokens, exact := t.Tokenize(ctx, text)
	if !exact {
		return Estimate(text), false
	}
	return len(tokens), true
}

// CountMessages returns the number of tokens of a whole prompt, in the model's
// template; where the server cannot say, the sum of the messages, which is not
// exact.
func (t *Tokenizer) CountMessages(ctx context.Context, messages []events.ChatMessage) (n int, exact bool) {
	in := struct {
		Messages []events.ChatMessage `json:"messages"`
	}{messages}
	var out struct {
		Tokens int `json:"input_tokens"`
	}
	err := t.client.call(ctx, http.MethodPost, "/v1/chat/completions/input_tokens", in, &out)
	if err == nil && out.Tokens > 0 {
		return out.Tokens, true
	}
	if err != nil {
		t.warn(err)
	}
	for _, m := range messages {
		count, _ := t.Count(ctx, m.Content)
		n += count
	}
	return n, false
}

func (t *Tokenizer) warn(err error) {
	log := t.Logger
	if log == nil {
		log = slog.Default()
	}
	log.Warn("tokens are estimated", slog.String("model", string(t.client.model)), slog.Any("error", err))
}

// Estimate guesses the number of tokens of text: a quarter of its UTF-16 units,
// at least 1 for a text that is not empty.
func Estimate(text string) int {
	if text == "" {
		return 0
	}
	units := 0
	for _, r := range text {
		units++
		if r > 0xFFFF {
			units++
		}
	}
	return max(1, units/4)
}
