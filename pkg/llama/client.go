package llama

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"correx/pkg/events"
)

// Health is what /health says. It is no proof that a model answers: see
// [Client.Probe].
type Health string

const (
	Healthy   Health = "healthy"
	Unhealthy Health = "unhealthy"
)

// A Client is one llama-server as an inference provider. It never retries. It
// is safe for use by several goroutines.
type Client struct {
	model events.ModelID
	base  string
	key   string
	http  *http.Client

	window   int // tokens of one request; 0: not known
	noSystem bool
	pulse    pulse
}

// NewClient returns the client of the server at base, "http://host:port" or
// "unix:/path/of.sock". An empty key sends none; hc nil means a client of its
// own, without a time-out, for an answer may take minutes: contexts end it.
func NewClient(model events.ModelID, base, key string, hc *http.Client) *Client {
	if hc == nil {
		hc = &http.Client{Transport: newTransport(base)}
	}
	if strings.HasPrefix(base, "unix:") {
		base = "http://llama-server"
	}
	return &Client{model: model, base: strings.TrimSuffix(base, "/"), key: key, http: hc}
}

// newTransport keeps no connection: llama-server closes one after a hundred
// requests, or five seconds, under the next request's feet, and does not end on
// SIGTERM while it has one.
func newTransport(base string) *http.Transport {
	t := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	if socket, ok := strings.CutPrefix(base, "unix:"); ok {
		var d net.Dialer
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", socket)
		}
	}
	return t
}

// ID names the provider.
func (c *Client) ID() events.ProviderID { return events.ProviderID("llama-cpp:" + string(c.model)) }

// Capabilities is what the model's name promises.
func (c *Client) Capabilities() []events.CapabilityScore { return Capabilities(c.model) }

// Window is how many tokens a request and its answer may have together; 0 where
// only the server knows.
func (c *Client) Window() int { return c.window }

// NoSystem reports whether the model's template is known to have no turns of the
// system, or to leave them out.
func (c *Client) NoSystem() bool { return c.noSystem }

// Tokenizer counts by this server.
func (c *Client) Tokenizer() *Tokenizer { return &Tokenizer{client: c} }

// Capabilities guesses from a name what a model is good at.
func Capabilities(m events.ModelID) []events.CapabilityScore {
	name := strings.ToLower(string(m))
	var found []events.CapabilityScore
	if strings.Contains(name, "coder") {
		found = append(found, events.CapabilityScore{Capability: events.Coding, Score: 0.9})
	}
	if strings.Contains(name, "r1") || strings.Contains(name, "deepseek") {
		found = append(found, events.CapabilityScore{Capability: events.Reasoning, Score: 0.9})
	}
	if len(found) == 0 {
		found = append(found, events.CapabilityScore{Capability: events.General, Score: 0.7})
	}
	return found
}

// Health is Healthy when /health answers 200.
func (c *Client) Health(ctx context.Context) Health {
	resp, err := c.send(ctx, http.MethodGet, "/health", nil)
	if err != nil {
		return Unhealthy
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Unhealthy
	}
	return Healthy
}

// Props is what a server says of itself.
type Props struct {
	ModelPath   string `json:"model_path"`
	ModelAlias  string `json:"model_alias"`
	Build       string `json:"build_info"`
	TotalSlots  int    `json:"total_slots"`
	ContextSize int    // tokens of one slot, as the server really has them
	NoSystem    bool   // the template has no turns of the system; an older server does not say
}

// Props asks the server who it is.
func (c *Client) Props(ctx context.Context) (Props, error) {
	var answer struct {
		Props
		Defaults struct {
			ContextSize int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Template struct {
			System *bool `json:"supports_system_role"`
		} `json:"chat_template_caps"`
	}
	err := c.call(ctx, http.MethodGet, "/props", nil, &answer)
	answer.Props.ContextSize = answer.Defaults.ContextSize
	answer.NoSystem = answer.Template.System != nil && !*answer.Template.System
	return answer.Props, err
}

// Busy reports how many slots are at work. The question passes through the
// server's task queue, so an answer shows that the queue moves.
func (c *Client) Busy(ctx context.Context) (int, error) {
	busy, _, err := c.slots(ctx)
	return busy, err
}

// slots is Busy, and what the server says of its slots in full: as long as one
// of them gets on, that is another text each time.
func (c *Client) slots(ctx context.Context) (busy int, all string, err error) {
	var raw json.RawMessage
	if err := c.call(ctx, http.MethodGet, "/slots", nil, &raw); err != nil {
		return 0, "", err
	}
	var slots []struct {
		Busy bool `json:"is_processing"`
	}
	if err := json.Unmarshal(raw, &slots); err != nil {
		return 0, "", fmt.Errorf("read /slots: %w", err)
	}
	for _, s := range slots {
		if s.Busy {
			busy++
		}
	}
	return busy, string(raw), nil
}

// Probe shows that the model answers: it generates one token.
func (c *Client) Probe(ctx context.Context) error {
	_, err := c.Infer(ctx, Request{
		Messages:   []events.ChatMessage{{Role: events.RoleUser, Content: "ping"}},
		Generation: events.GenerationConfig{MaxTokens: 1},
	})
	return err
}

// call is one exchange of JSON; in and out may be nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return fmt.Errorf("read %s: %w", path, broken(ctx, err))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// maxBody bounds an answer that is read at once, in bytes. Token lists are the
// longest.
const maxBody = 64 << 20

// send posts a request and returns the answer when its status is 2xx, else what
// refusal makes of it.
func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := encode(in)
		if err != nil {
			return nil, fmt.Errorf("encode request of %s: %w", path, err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("ask llama-server %s: %w", path, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", path, broken(ctx, err))
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what is there of it
		return nil, refusal(resp.StatusCode, data)
	}
	return resp, nil
}

// encode is json.Marshal without the escaping of <, > and &.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// orCancelled returns the end of ctx, and its cause if that says more, where ctx
// has ended: whatever err says came of it.
func orCancelled(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}

// broken is orCancelled for an error of the connection.
func broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return orCancelled(ctx, err)
	}
	return fmt.Errorf("%w: %w", ErrConnection, err)
}
