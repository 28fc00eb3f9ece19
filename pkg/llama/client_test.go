package llama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"correx/pkg/events"
)

// serve answers every request with one body; what was asked is in the result.
func serve(t *testing.T, status int, body string) (*Client, *http.Request, *[]byte) {
	t.Helper()
	asked, sent := &http.Request{}, &[]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = *r.Clone(context.Background())
		*sent, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return NewClient("org/mod:el", server.URL, "secret", server.Client()), asked, sent
}

const (
	said = `data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}]}

: ping

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hel"}}]}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"lo"}}]}

`
	finished = `data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}]}

data: {"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":30,"total_tokens":32,"prompt_tokens_details":{"cached_tokens":29}},"timings":{"cache_n":29,"predicted_ms":52.088}}

`
	done = "data: [DONE]\n\n"
)

func TestLlamaCppInferenceProvider(t *testing.T) {
	t.Run("request maps GenerationConfig fields correctly to ChatCompletionRequest", func(t *testing.T) {
		c, asked, sent := serve(t, 200, said+finished+done)
		_, err := c.Infer(context.Background(), Request{
			Messages: []events.ChatMessage{{Role: events.RoleSystem, Content: "<be> & brief"}, {Role: events.RoleUser, Content: "hi"}},
			Generation: events.GenerationConfig{Temperature: 0.25, TopP: 0.5, TopK: 7, MinP: 0.125, RepeatPenalty: 1.5,
				MaxTokens: 99, Stop: []string{"END"}, Seed: 9007199254740993},
			Schema: events.Raw(`{"oneOf":[{"z":1,"a":2}]}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		if asked.URL.Path != "/v1/chat/completions" || asked.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked %s with %v", asked.URL.Path, asked.Header)
		}
		if asked.Header.Get("X-Conversation-Id") != "" {
			t.Error("X-Conversation-Id was sent: a generation would survive its client")
		}
		for _, want := range []string{
			`"model":"org/mod:el"`, `"messages":[{"role":"system","content":"<be> & brief"},{"role":"user","content":"hi"}]`,
			`"temperature":0.25`, `"top_p":0.5`, `"top_k":7`, `"min_p":0.125`, `"repeat_penalty":1.5`, `"max_tokens":99`,
			`"stop":["END"]`, `"seed":9007199254740993`, `"stream":true`, `"stream_options":{"include_usage":true}`,
			`"schema":{"oneOf":[{"z":1,"a":2}]}`, `"type":"json_schema"`,
		} {
			if !strings.Contains(string(*sent), want) {
				t.Errorf("no %s in %s", want, *sent)
			}
		}
	})
	t.Run("usage mapped to TokenUsage correctly", func(t *testing.T) {
		c, _, _ := serve(t, 200, said+finished+done)
		var pieces []string
		r := ask("hi")
		r.OnDelta = func(s string) { pieces = append(pieces, s) }
		got, err := c.Infer(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		if want := (events.TokenUsage{Prompt: 30, Completion: 2, Total: 32, Cached: 29}); got.Usage != want {
			t.Errorf("usage is %+v, want %+v", got.Usage, want)
		}
		if got.Text != "Hello" || got.Finish != events.FinishStop || got.Latency <= 0 || got.Timings["predicted_ms"] != 52.088 {
			t.Errorf("answer is %+v", got)
		}
		if !reflect.DeepEqual(pieces, []string{"Hel", "lo"}) {
			t.Errorf("pieces are %q", pieces)
		}
	})
	t.Run("non-2xx response → InferenceProviderException thrown", func(t *testing.T) {
		for _, tt := range statusCases {
			c, _, _ := serve(t, tt.code, tt.body)
			_, err := c.Infer(context.Background(), ask("hi"))
			var got *StatusError
			if !errors.As(err, &got) || *got != tt.want {
				t.Errorf("%d %s: error is %v, want %+v", tt.code, tt.body, err, tt.want)
			}
			if IsOverflow(err) != (tt.want.ContextSize > 0) {
				t.Errorf("%v: overflow is %v", err, IsOverflow(err))
			}
		}
	})
	t.Run("healthCheck() returns Healthy on 200, Unhealthy otherwise", func(t *testing.T) {
		for _, code := range []int{200, 204, 401, 404, 500, 503} {
			c, asked, _ := serve(t, code, "")
			want := Unhealthy
			if code == 200 {
				want = Healthy
			}
			if got := c.Health(context.Background()); got != want || asked.URL.Path != "/health" {
				t.Errorf("%d of %s is %s", code, asked.URL.Path, got)
			}
		}
		if got := NewClient("m", "http://127.0.0.1:1", "", nil).Health(context.Background()); got != Unhealthy {
			t.Errorf("nobody there is %s", got)
		}
	})
}

var statusCases = []struct {
	code int
	body string
	want StatusError
}{
	{400, `{"error":{"code":400,"message":"request (10020 tokens) exceeds the available context size (2048 tokens)","type":"exceed_context_size_error","n_prompt_tokens":10020,"n_ctx":2048}}`,
		StatusError{400, "exceed_context_size_error", "request (10020 tokens) exceeds the available context size (2048 tokens)", 10020, 2048}},
	{401, `{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`, StatusError{Code: 401, Type: "authentication_error", Message: "Invalid API Key"}},
	{503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, StatusError{Code: 503, Type: "unavailable_error", Message: "Loading model"}},
	{502, "bad gateway\n", StatusError{Code: 502, Message: "bad gateway"}},
	{500, `{"error":"text"}`, StatusError{Code: 500, Message: `{"error":"text"}`}},
	{404, "", StatusError{Code: 404}},
}

func TestSampling(t *testing.T) {
	c, _, sent := serve(t, 200, said+finished+done)
	if _, err := c.Infer(context.Background(), Request{}); err != nil {
		t.Fatal(err)
	}
	got := map[string]json.RawMessage{}
	if err := json.Unmarshal(*sent, &got); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{
		"temperature": "0", "top_p": "1", "top_k": "0", "min_p": "0", "repeat_penalty": "1", "max_tokens": "512",
		"stop": "[]", "seed": "0", "typical_p": "1", "presence_penalty": "0", "frequency_penalty": "0",
		"messages": `[{"role":"user","content":""}]`,
	} {
		if string(got[field]) != want {
			t.Errorf("%s is sent as %s, want %s", field, got[field], want)
		}
	}
	if _, ok := got["response_format"]; ok {
		t.Error("free text has a response_format")
	}
}

func TestStreamThatEndsTooEarly(t *testing.T) {
	failure := `data: {"error":{"code":500,"message":"out of memory","type":"server_error"}}` + "\n\n"
	for name, tt := range map[string]struct {
		body   string
		status bool
		text   string
	}{
		"error in mid-stream":          {said + failure, true, "Hello"},
		"bare end":                     {said, false, "Hello"},
		"finish but no DONE":           {said + finished, false, "Hello"},
		"DONE but no finish":           {said + done, false, "Hello"},
		"nothing at all":               {"", false, ""},
		"cut in the middle of a line":  {said + `data: {"choices":[{"fin`, false, "Hello"},
		"something that is not a JSON": {said + "data: what\n\n" + finished + done, false, "Hello"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _ := serve(t, 200, tt.body)
			got, err := c.Infer(context.Background(), ask("hi"))
			var status *StatusError
			if err == nil || errors.As(err, &status) != tt.status {
				t.Fatalf("error is %v", err)
			}
			if tt.status && (status.Code != 500 || status.Message != "out of memory") {
				t.Errorf("status is %+v", status)
			}
			if got.Text != tt.text {
				t.Errorf("text is %q, want %q", got.Text, tt.text)
			}
		})
	}
}

func TestBrokenConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, said)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	_, err := NewClient("m", server.URL, "", nil).Infer(context.Background(), ask("hi"))
	if !errors.Is(err, ErrConnection) {
		t.Errorf("error is %v", err)
	}
}

func TestCancelledInference(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not notice who leaves
		_, _ = io.WriteString(w, said)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	why := errors.New("the session ended")
	ctx, cancel := context.WithCancelCause(context.Background())
	r := ask("hi")
	r.OnDelta = func(string) { cancel(why) }
	_, err := NewClient("m", server.URL, "", nil).Infer(ctx, r)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("error is %v", err)
	}
	<-gone
}

func TestCapabilities(t *testing.T) {
	coding := events.CapabilityScore{Capability: events.Coding, Score: 0.9}
	reasoning := events.CapabilityScore{Capability: events.Reasoning, Score: 0.9}
	for id, want := range map[events.ModelID][]events.CapabilityScore{
		"Qwen2.5-Coder-0.5B": {coding}, "DeepSeek-R1": {reasoning}, "deepseek-coder": {coding, reasoning},
		"phi-4-r1": {reasoning}, "SmolLM2": {{Capability: events.General, Score: 0.7}},
	} {
		c := NewClient(id, "http://127.0.0.1:1", "", nil)
		if got := c.Capabilities(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s can %v, want %v", id, got, want)
		}
		if c.ID() != events.ProviderID("llama-cpp:"+string(id)) {
			t.Errorf("id is %s", c.ID())
		}
	}
}

func TestTokenizer(t *testing.T) {
	ctx := context.Background()
	messages := []events.ChatMessage{{Role: events.RoleUser, Content: strings.Repeat("x", 40)}, {Role: events.RoleUser, Content: "y"}}

	t.Run("by the server", func(t *testing.T) {
		c, asked, sent := serve(t, 200, `{"tokens":[1,2,3]}`)
		tokens, exact := c.Tokenizer().Tokenize(ctx, "<|im_end|>")
		if !exact || !reflect.DeepEqual(tokens, []int{1, 2, 3}) || asked.URL.Path != "/tokenize" {
			t.Errorf("%s says %v %v", asked.URL.Path, tokens, exact)
		}
		if want := `{"content":"<|im_end|>","add_special":false,"parse_special":false}`; strings.TrimSpace(string(*sent)) != want {
			t.Errorf("sent %s", *sent)
		}
	})
	t.Run("a whole prompt by the template", func(t *testing.T) {
		c, asked, _ := serve(t, 200, `{"input_tokens":30,"object":"response.input_tokens"}`)
		if n, exact := c.Tokenizer().CountMessages(ctx, messages); n != 30 || !exact || asked.URL.Path != "/v1/chat/completions/input_tokens" {
			t.Errorf("%s says %d %v", asked.URL.Path, n, exact)
		}
	})
	t.Run("by estimate", func(t *testing.T) {
		c, _, _ := serve(t, 500, "")
		for text, want := range map[string]int{
			"": 0, "a": 1, "abcd": 1, "abcdefgh": 2, "ééééé": 1, strings.Repeat("😀", 6): 3, "\xff\xff\xff\xff\xff\xff\xff\xff": 2,
		} {
			tokens, exact := c.Tokenizer().Tokenize(ctx, text)
			n, exactly := c.Tokenizer().Count(ctx, text)
			if tokens != nil || exact || exactly || n != want {
				t.Errorf("%q: %v, %d tokens, want %d", text, tokens, n, want)
			}
		}
		if n, exact := c.Tokenizer().CountMessages(ctx, messages); n != 11 || exact {
			t.Errorf("a prompt is %d %v, want the sum", n, exact)
		}
	})
}

func ExampleStatusError() {
	fmt.Println(&StatusError{Code: 503, Type: "unavailable_error", Message: "Loading model"})
	// Output: llama-server answered 503 unavailable_error: Loading model
}
