package testmodel_test

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"correx/internal/testmodel"
)

const (
	writeBranch = `{"type":"object","properties":{"kind":{"const":"tool"},"name":{"const":"file_write"},
		"arguments":{"type":"object","properties":{"path":{"type":"string","maxLength":256},"content":{"type":"string","maxLength":4096}},
		"required":["path","content"],"additionalProperties":false}},
		"required":["kind","name","arguments"],"additionalProperties":false}`
	readBranch = `{"type":"object","properties":{"kind":{"const":"tool"},"name":{"const":"file_read"},
		"arguments":{"type":"object","properties":{"path":{"type":"string","minLength":1,"maxLength":256},"limit":{"type":"integer","minimum":1,"maximum":500}},
		"required":["path","limit"],"additionalProperties":false}},
		"required":["kind","name","arguments"],"additionalProperties":false}`
	finalBranch = `{"type":"object","properties":{"kind":{"const":"final"},"text":{"type":"string","maxLength":1000}},
		"required":["kind","text"],"additionalProperties":false}`
	shortFinal = `{"type":"object","properties":{"kind":{"const":"final"},"text":{"type":"string","maxLength":3}},
		"required":["kind","text"],"additionalProperties":false}`
)

var (
	write = testmodel.Call("file_write", `{"path":"notes/hello.txt","content":"Grüße & <b>\n\"hi\""}`)
	read  = testmodel.Call("file_read", `{"path":"notes/hello.txt","limit":10}`)
	done  = testmodel.Final("It says hi.")
	all   = schema(writeBranch, readBranch, finalBranch)
)

func unixClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

func scripted(t *testing.T, s testmodel.Script) *server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := testmodel.Scripted(path, s); err != nil {
		t.Fatal(err)
	}
	return serve(t, path)
}

// example is what comes before a task: a system message, and a task done.
var example = []message{
	{"system", "You act by tools. {\"kind\":\"tool\"} file_write(path, content)"},
	user("Write one to a.txt."),
	assistant(testmodel.Call("file_write", `{"path":"a.txt","content":"one"}`)),
	user("tool result: wrote 3 bytes"),
	assistant(testmodel.Final("Written.")),
}

func after(chat []message, more ...message) []message {
	return append(chat[:len(chat):len(chat)], more...)
}

func TestScriptAnswersInOrder(t *testing.T) {
	s := scripted(t, testmodel.Script{Tasks: map[string][]string{
		"hello": {write, read, done},
		"other": {testmodel.Final("Other.")},
	}})
	t.Log("ready after", s.ready)

	chat := after(example, user(testmodel.Task("hello", "Write hi and read it back.")))
	s.expect(write, chat, all)
	chat = after(chat, assistant(write), user("tool result: wrote 9 bytes"))
	s.expect(read, chat, all)
	chat = after(chat, assistant(read), user("tool result: hi"))
	s.expect(done, chat, all)
	chat = after(chat, assistant(done), user("Once more?"))
	s.expect(done, chat, all)

	t.Run("the same task begins again", func(t *testing.T) {
		s.expect(write, after(chat, user(testmodel.Task("hello", "Again."))), all)
	})
	t.Run("another task", func(t *testing.T) {
		s.expect(testmodel.Final("Other."), after(chat, user(testmodel.Task("other", "Now this."))), all)
	})
	t.Run("no task, or an unknown one", func(t *testing.T) {
		s.expect(testmodel.Final("Done."), []message{user("hi [task:unknown]")}, all)
	})
	t.Run("no schema", func(t *testing.T) {
		s.expect(write, chat[:6], nil)
	})
	t.Run("hot, and penalised", func(t *testing.T) {
		hot := maps.Clone(all)
		maps.Copy(hot, map[string]any{"temperature": 1.5, "repeat_penalty": 1.5, "repeat_last_n": 4096, "presence_penalty": 1.0, "min_p": 0})
		s.expect(read, after(chat[:6], assistant(write), user("tool result: ok")), hot)
		s.expect(done, chat, hot)
	})
}

func TestScriptMeetsTheSchema(t *testing.T) {
	s := scripted(t, testmodel.Script{Tasks: map[string][]string{
		"hello": {write, read, done},
		"calls": {write},
		"odd":   {"not JSON"},
	}})
	task := func(key string) []message { return []message{user(testmodel.Task(key, "Do it."))} }

	s.expect(done, task("hello"), schema(finalBranch))
	s.expect(done, task("hello"), schema(readBranch, finalBranch))
	s.expect(testmodel.Final("Done."), task("calls"), schema(finalBranch))
	s.expect(testmodel.Final(""), task("calls"), schema(shortFinal))
	s.expect("not JSON", task("odd"), nil)
	s.expect(testmodel.Final("Done."), task("odd"), all)

	forced := s.ask(task("calls"), schema(readBranch))
	var call struct {
		Arguments struct {
			Path  string
			Limit int
		}
	}
	if err := json.Unmarshal([]byte(forced.Text), &call); err != nil || call.Arguments.Path == "" || call.Arguments.Limit == 0 {
		t.Errorf("a forced call is %q", forced.Text)
	}
	if forced.Tokens > 150 {
		t.Errorf("a forced call takes %d tokens", forced.Tokens)
	}
}

func TestEndless(t *testing.T) {
	for _, slow := range []bool{false, true} {
		s := scripted(t, testmodel.Script{Default: []string{testmodel.Endless}, Slow: slow})
		begun := time.Now()
		got := s.ask([]message{user(strings.Repeat("A long prompt. ", 400))}, map[string]any{"max_tokens": 1})
		prompt := time.Since(begun)

		begun = time.Now()
		got = s.ask(after(example, user("Go on.")), all)
		t.Logf("slow %v: ready after %v, a prompt of 6000 characters took %v, %d tokens %v",
			slow, s.ready, prompt, got.Tokens, time.Since(begun))
		if got.Finish != "length" || got.Tokens != 512 {
			t.Errorf("finish %q after %d tokens, want the length of 512", got.Finish, got.Tokens)
		}

		got = s.ask(after(example, user("Go on.")), schema(shortFinal))
		if got.Text != testmodel.Final("zzz") {
			t.Errorf("with a bound: %q", got.Text)
		}
	}
}

func TestRandom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := testmodel.Random(path, 1); err != nil {
		t.Fatal(err)
	}
	s := serve(t, path)
	begun := time.Now()
	got := s.ask(after(example, user("Go on.")), nil)
	t.Logf("ready after %v; %d tokens took %v", s.ready, got.Tokens, time.Since(begun))
	if again := s.ask(after(example, user("Go on.")), map[string]any{"cache_prompt": false}); again.Text != got.Text {
		t.Errorf("two answers differ: %q, %q", got.Text, again.Text)
	}
	if got := s.ask(after(example, user("Go on.")), all); got.Finish == "stop" && !json.Valid([]byte(got.Text)) {
		t.Errorf("with a schema: %q", got.Text)
	}
}
