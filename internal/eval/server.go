package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"correx/pkg/events"
	"correx/pkg/llama"
)

// What holds for every model and every loop.
const (
	contextSize = 4096 // tokens of the window
	maxTokens   = 320  // of one inference: the same for all loops, and more than an answer of 800 characters takes
)

// A server is a llama-server for the loops that are not Correx, started as Correx
// starts its own.
type server struct {
	cmd    *exec.Cmd
	base   string
	client *llama.Client
}

func startServer(ctx context.Context, program, model, path, log string) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(program, "-m", path, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "-np", "1",
		"-c", strconv.Itoa(contextSize), "--threads", strconv.Itoa(threads()), "--no-webui", "--cache-ram", "0", "--jinja")
	cmd.Stderr, cmd.Stdout = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, base: "http://127.0.0.1:" + strconv.Itoa(port)}
	s.client = llama.NewClient(events.ModelID(model), s.base, "", nil)
	for s.client.Health(ctx) != llama.Healthy {
		if ctx.Err() != nil {
			s.stop()
			return nil, fmt.Errorf("llama-server with %s is not ready; see %s", path, log)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return s, nil
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// A nativeMessage is a chat message with tool calls, as the API has them.
type nativeMessage struct {
	Role    string       `json:"role"`
	Content string       `json:"content"`
	Calls   []nativeCall `json:"tool_calls,omitempty"`
	CallID  string       `json:"tool_call_id,omitempty"`
}

type nativeCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// native asks with the tools handed to the server, as most runtimes do.
func (s *server) native(ctx context.Context, messages []nativeMessage, tools []any) (m nativeMessage, finish string, usage events.TokenUsage, err error) {
	body, err := json.Marshal(map[string]any{
		"messages": messages, "tools": tools, "temperature": 0, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 0, "max_tokens": maxTokens,
	})
	if err != nil {
		return m, "", usage, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return m, "", usage, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return m, "", usage, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return m, "", usage, err
	}
	var answer struct {
		Choices []struct {
			Message nativeMessage `json:"message"`
			Finish  string        `json:"finish_reason"`
		} `json:"choices"`
		Usage events.TokenUsage `json:"usage"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || len(answer.Choices) == 0 {
		return m, "", usage, fmt.Errorf("answer is %.200s", data)
	}
	return answer.Choices[0].Message, answer.Choices[0].Finish, answer.Usage, nil
}
