package testmodel_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"correx/internal/testenv"
)

// A server is a llama-server with one model, reached by a Unix socket.
type server struct {
	t      testing.TB
	client *http.Client
	ready  time.Duration // from start to the first answer
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func user(text string) message      { return message{"user", text} }
func assistant(text string) message { return message{"assistant", text} }

func serve(t testing.TB, model string) *server {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "llama.sock")
	var log bytes.Buffer
	cmd := exec.Command(testenv.LlamaServer(t), "-m", model, "--host", socket,
		"-np", "1", "-t", "2", "--ctx-size", "32768", "--cache-ram", "0", "--no-webui")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { defer close(exited); _ = cmd.Wait() }()

	s := &server{t: t, client: unixClient(socket)}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-exited
		if t.Failed() {
			t.Log(log.String())
		}
	})
	for {
		if resp, err := s.client.Get("http://llama/health"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				s.ready = time.Since(begun)
				return s
			}
		}
		select {
		case <-exited:
			t.Fatal("llama-server ended: ", cmd.ProcessState)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// An answer is what the server said to one request.
type answer struct {
	Text   string
	Finish string
	Tokens int
}

// ask sends a chat; extra fields override the defaults.
func (s *server) ask(chat []message, extra map[string]any) answer {
	s.t.Helper()
	request := map[string]any{"messages": chat, "temperature": 0, "max_tokens": 512}
	for k, v := range extra {
		request[k] = v
	}
	body, _ := json.Marshal(request)
	resp, err := s.client.Post("http://llama/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	reply, _ := io.ReadAll(resp.Body)
	var out struct {
		Choices []struct {
			Message      message
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			CompletionTokens int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(reply, &out); err != nil || len(out.Choices) != 1 {
		s.t.Fatalf("llama-server answered %d: %s", resp.StatusCode, reply)
	}
	c := out.Choices[0]
	return answer{c.Message.Content, c.FinishReason, out.Usage.CompletionTokens}
}

// expect asks and compares the text.
func (s *server) expect(want string, chat []message, extra map[string]any) {
	s.t.Helper()
	if got := s.ask(chat, extra); got.Text != want || got.Finish != "stop" {
		s.t.Errorf("got %q (%s), want %q", got.Text, got.Finish, want)
	}
}

// schema is a response_format with the given branches.
func schema(branches ...string) map[string]any {
	var list []json.RawMessage
	for _, b := range branches {
		list = append(list, json.RawMessage(b))
	}
	return map[string]any{"response_format": map[string]any{
		"type":        "json_schema",
		"json_schema": map[string]any{"schema": map[string]any{"oneOf": list}},
	}}
}
