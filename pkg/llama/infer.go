package llama

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"correx/pkg/events"
)

// A Request asks for one answer.
type Request struct {
	Messages   []events.ChatMessage // none: one empty user message
	Generation events.GenerationConfig
	Schema     events.Raw // JSON Schema that the answer must meet; keys are generated in its order. Empty: free text
	// OnDelta and OnReasoning are called with each piece of the answer, and of what
	// the model thought before it, in order, by Infer's goroutine; may be nil.
	OnDelta, OnReasoning func(text string)
}

// A Response is a finished answer.
type Response struct {
	Text      string // valid UTF-8
	Reasoning string // what the model thought before, where the server tells it apart; no part of Text
	Finish    events.FinishReason
	Usage     events.TokenUsage
	Latency   time.Duration      // wall clock of the HTTP call
	Timings   map[string]float64 // the server's own: cache_n, prompt_ms, predicted_n, …
}

// Infer generates one answer. It ends early with ctx, whose error is then in
// the one returned, and frees the server's slot by disconnecting. A refusal is
// a *StatusError, or an *OverflowError around one; a stream that ends too early is ErrTruncated. What was
// generated until a failure is in Response.Text.
func (c *Client) Infer(ctx context.Context, r Request) (Response, error) {
	start := time.Now()
	defer c.pulse.begin()()
	resp, err := c.send(ctx, http.MethodPost, "/v1/chat/completions", c.chat(r))
	if err != nil {
		return Response{Latency: time.Since(start)}, fmt.Errorf("infer with %s: %w", c.model, err)
	}
	defer resp.Body.Close()
	answer, err := readStream(resp.Body, r, c.pulse.beat)
	answer.Latency = time.Since(start)
	if err != nil {
		return answer, fmt.Errorf("infer with %s: %w", c.model, orCancelled(ctx, err))
	}
	return answer, nil
}

// Values that are sent where a GenerationConfig has none.
const (
	defaultTopP          = 1
	defaultRepeatPenalty = 1
	defaultMaxTokens     = 512
)

// A chatRequest is the body of /v1/chat/completions. No sampling field is left
// to the server, whose defaults differ by version, by flag and by model file.
type chatRequest struct {
	Model    events.ModelID       `json:"model"`
	Messages []events.ChatMessage `json:"messages"`

	Temperature   float64  `json:"temperature"`
	TopP          float64  `json:"top_p"`
	TopK          int      `json:"top_k"` // 0: off
	MinP          float64  `json:"min_p"` // 0: off
	RepeatPenalty float64  `json:"repeat_penalty"`
	MaxTokens     int      `json:"max_tokens"`
	Stop          []string `json:"stop"`
	Seed          int64    `json:"seed"`

	neutral

	Format        *responseFormat `json:"response_format,omitempty"`
	CachePrompt   bool            `json:"cache_prompt"`
	Stream        bool            `json:"stream"`
	StreamOptions streamOptions   `json:"stream_options"`
}

// neutral are the samplers that Correx does not use, switched off.
type neutral struct {
	TypicalP         float64 `json:"typical_p"`
	PresencePenalty  float64 `json:"presence_penalty"`
	FrequencyPenalty float64 `json:"frequency_penalty"`
	RepeatLastN      int     `json:"repeat_last_n"` // tokens that the repeat penalty looks back
	DynatempRange    float64 `json:"dynatemp_range"`
	XTCProbability   float64 `json:"xtc_probability"`
	DryMultiplier    float64 `json:"dry_multiplier"`
	Mirostat         int     `json:"mirostat"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type responseFormat struct {
	Type   string     `json:"type"`
	Schema jsonSchema `json:"json_schema"`
}

type jsonSchema struct {
	Name   string     `json:"name"`
	Schema events.Raw `json:"schema"`
	Strict bool       `json:"strict"`
}

func (c *Client) chat(r Request) chatRequest {
	g := r.Generation
	body := chatRequest{
		Model: c.model, Messages: r.Messages,
		Temperature: g.Temperature, TopP: orDefault(g.TopP, defaultTopP), TopK: g.TopK, MinP: g.MinP,
		RepeatPenalty: orDefault(g.RepeatPenalty, defaultRepeatPenalty),
		MaxTokens:     orDefault(g.MaxTokens, defaultMaxTokens), Stop: g.Stop, Seed: g.Seed,
		neutral:     neutral{TypicalP: 1, RepeatLastN: 64},
		CachePrompt: !g.Exact, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
	}
	if len(body.Messages) == 0 {
		body.Messages = []events.ChatMessage{{Role: events.RoleUser}}
	}
	if body.Stop == nil {
		body.Stop = []string{}
	}
	if len(r.Schema) > 0 {
		body.Format = &responseFormat{Type: "json_schema", Schema: jsonSchema{Name: "action", Schema: r.Schema, Strict: true}}
	}
	return body
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
