package llama

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"correx/internal/testmodel"
	"correx/pkg/events"
)

func TestRawText(t *testing.T) {
	for in, want := range map[string]string{
		`""`: "", `null`: "", `"a\"b\\c\/d\b\f\n\r\t"`: "a\"b\\c/d\b\f\n\r\t",
		`"\u00e9\u20AC\ud83d\ude00"`: "é€😀", `"\ud83dx"`: "\uFFFDx", `"\ude00"`: "\uFFFD", `"é😀"`: "é😀",
		"\"\xf0\x9f\"": "\xf0\x9f", `"\ud83d\u0041"`: "\uFFFDA",
	} {
		var got rawText
		if err := json.Unmarshal([]byte(in), &got); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", in, got, err, want)
		}
	}
}

func FuzzRawText(f *testing.F) {
	f.Add("a\\u00e9\"\xff😀")
	f.Fuzz(func(t *testing.T, s string) {
		data, err := json.Marshal(s)
		if err != nil {
			t.Skip(err)
		}
		var plain string
		var raw rawText
		if json.Unmarshal(data, &plain) != nil || json.Unmarshal(data, &raw) != nil || string(raw) != plain {
			t.Errorf("%s is %q, and not %q", data, raw, plain)
		}
	})
}

// A character that comes in two parts is told whole; what is none is replaced.
func TestPieces(t *testing.T) {
	for _, tt := range []struct{ parts, told []string }{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"x\xf0\x9f", "\x98\x80y"}, []string{"x", "😀y"}},
		{[]string{"\xc3", "\xa9"}, []string{"é"}},
		{[]string{"\xf0", "\x9f", "\x98", "\x80"}, []string{"😀"}},
		{[]string{"\xff\xfe", "a"}, []string{"\uFFFD", "a"}},
		{[]string{"a\xe2\x82"}, []string{"a", "\uFFFD"}}, // it never came
		{[]string{"\xe2\x82", "b"}, []string{"\uFFFDb"}},
		{[]string{"\x80\x80\x80\x80\x80"}, []string{"\uFFFD"}},
	} {
		var told []string
		p := newPieces(func(s string) { told = append(told, s) })
		for _, part := range tt.parts {
			raw := rawText(part)
			p.add(&raw)
		}
		text := p.end()
		if strings.Join(told, "|") != strings.Join(tt.told, "|") || text != strings.Join(tt.told, "") {
			t.Errorf("%q is told as %q, in all %q", tt.parts, told, text)
		}
	}
}

// A model with random weights says any bytes. What is told of it piece by piece
// is what it said in all, and all of it is text.
func TestRandomBytes(t *testing.T) {
	m, _ := manage(t, nil)
	d := model(t, "random", func(path string) error { return testmodel.Random(path, 7) })
	split := 0
	for seed := range int64(5) {
		var told strings.Builder
		r := ask("hi")
		r.Generation = events.GenerationConfig{Temperature: 1.5, MaxTokens: 400, Seed: seed}
		r.OnDelta = func(s string) {
			if !utf8.ValidString(s) {
				t.Errorf("%q was told", s)
			}
			told.WriteString(s)
		}
		got, err := m.Model(d).Infer(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		if got.Text != told.String() || !utf8.ValidString(got.Text) {
			t.Errorf("%q was told, %q was the answer", told.String(), got.Text)
		}
		split += strings.Count(got.Text, "\uFFFD")
	}
	if split == 0 {
		t.Error("no bytes came that are no text: the test shows nothing")
	}
}

// What a model thinks before it answers is no part of the answer.
func TestReasoning(t *testing.T) {
	c, _, _ := serve(t, 200, `data: {"choices":[{"delta":{"role":"assistant","content":null}}]}

data: {"choices":[{"delta":{"reasoning_content":"Let me "}}]}

data: {"choices":[{"delta":{"reasoning_content":"think."}}]}

`+said+finished+done)
	var thought, told string
	r := ask("hi")
	r.OnReasoning = func(s string) { thought += s }
	r.OnDelta = func(s string) { told += s }
	got, err := c.Infer(context.Background(), r)
	if err != nil || got.Text != "Hello" || told != "Hello" || got.Reasoning != "Let me think." || thought != got.Reasoning {
		t.Errorf("answer is %+v, %v; told %q, thought %q", got, err, told, thought)
	}
}

// The real server tells thoughts apart where the template has a place for them.
func TestReasoningOfTheServer(t *testing.T) {
	m, _ := manage(t, nil)
	d := model(t, "one", func(path string) error {
		return testmodel.Scripted(path, testmodel.Script{Default: []string{"<think>\nIt is easy.\n</think>\n\nHello."}})
	})
	d.Args = []string{"--reasoning-format", "deepseek", "--chat-template", "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}{% if m['reasoning_content'] %}{{ '<think>\\n' + m['reasoning_content'] + '\\n</think>\\n\\n' }}{% endif %}{{ m['content'] + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<turn::0>' }}{% endif %}"}
	got, err := m.Model(d).Infer(context.Background(), ask("hi"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != "Hello." || strings.TrimSpace(got.Reasoning) != "It is easy." {
		t.Errorf("answer is %+v", got)
	}
}

// Each type of error that the server has, as errors.Is knows it.
func TestTypesOfError(t *testing.T) {
	for kind, want := range map[string]error{
		"invalid_request_error": ErrInvalidRequest, "authentication_error": ErrAuthentication, "permission_error": ErrPermission,
		"not_found_error": ErrNotFound, "server_error": ErrServer, "not_supported_error": ErrNotSupported,
		"unavailable_error": ErrUnavailable, "exceed_context_size_error": ErrOverflow,
	} {
		body := `{"error":{"code":400,"message":"m","type":"` + kind + `","n_prompt_tokens":30,"n_ctx":20}}`
		for where, stream := range map[string]string{"at once": body, "in mid-stream": said + "data: " + body + "\n\n"} {
			status := 400
			if where != "at once" {
				status = 200
			}
			c, _, _ := serve(t, status, stream)
			_, err := c.Infer(context.Background(), ask("hi"))
			for _, other := range sentinels {
				if errors.Is(err, other) != (other == want) {
					t.Errorf("%s %s: %v is %v: %v", kind, where, err, other, other != want)
				}
			}
			var overflow *OverflowError
			if errors.As(err, &overflow) != (want == ErrOverflow) || overflow != nil && (overflow.PromptTokens != 30 || overflow.ContextSize != 20) {
				t.Errorf("%s %s: %+v", kind, where, overflow)
			}
		}
	}
	c, _, _ := serve(t, 500, `{"error":{"code":500,"message":"m","type":"new_error"}}`)
	if _, err := c.Infer(context.Background(), ask("hi")); err == nil || errors.Is(err, nil) {
		t.Errorf("an unknown type is %v", err)
	}
}

// The same errors, from the real server.
func TestErrorsOfTheServer(t *testing.T) {
	m, _ := manage(t, nil)
	err := m.Model(scripted(t, "one")).Use(context.Background(), func(ctx context.Context, c *Client) error {
		bad := ask("hi")
		bad.Schema = events.Raw(`{"$ref":"https://nowhere.example/x.json"}`)
		_, err := c.Infer(ctx, bad)
		if !errors.Is(err, ErrInvalidRequest) {
			t.Errorf("a schema from elsewhere: %v", err)
		}
		if err := c.call(ctx, "GET", "/nowhere", nil, nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("a path that is none: %v", err)
		}
		stranger := &Client{model: c.model, base: c.base, key: "wrong", http: c.http}
		if err := stranger.Probe(ctx); !errors.Is(err, ErrAuthentication) {
			t.Errorf("a wrong key: %v", err)
		}
		var overflow *OverflowError
		if _, err := c.Infer(ctx, ask(strings.Repeat("long ", 5000))); !errors.As(err, &overflow) || overflow.ContextSize != 4096 || overflow.PromptTokens < 5000 {
			t.Errorf("too long a prompt: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Asked for an exact answer, a model of random weights says the same again,
// whatever was asked and cached before, and whatever else is asked meanwhile.
func TestManagerExact(t *testing.T) {
	m, _ := manage(t, nil)
	d := model(t, "random", func(path string) error { return testmodel.Random(path, 3) })
	d.Parallel = 3
	exact := ask("Say something.")
	exact.Generation = events.GenerationConfig{Temperature: 1, MaxTokens: 200, Seed: 11, Exact: true}
	other := exact
	other.Generation.Exact, other.Generation.Seed = false, 12
	stop := make(chan struct{})
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			for {
				select {
				case <-stop:
					ended <- nil
					return
				default:
				}
				if _, err := m.Model(d).Infer(context.Background(), other); err != nil {
					ended <- err
					return
				}
			}
		}()
	}
	var first Response
	for k := range 5 {
		got, err := m.Model(d).Infer(context.Background(), exact)
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			first = got
		}
		if got.Text != first.Text || got.Usage.Cached != 0 {
			t.Errorf("answer %d is another, with %d cached tokens:\n%q\n%q", k, got.Usage.Cached, got.Text, first.Text)
		}
	}
	close(stop)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
