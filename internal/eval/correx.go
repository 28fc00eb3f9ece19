package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/internal/signedlog"
	"correx/pkg/events"
)

// correxLoop is the whole system, each part in its process. A rule permits what a
// person would be asked.
type correxLoop struct {
	procs []*exec.Cmd
	nc    *nats.Conn
	log   *eventlog.Log
	tag   string
	n     int
}

const correxConfig = `
session:
  limits: {turns: %d, wall_time: 10m}
approval:
  policy:
    - {effect: allow, tool: file_write}
    - {effect: allow, tool: file_edit}
    - {effect: allow, tool: shell}
tools:
  file_read: {enabled: true, allowed_paths: [%[2]q]}
  file_write: {enabled: true, allowed_paths: [%[2]q]}
  file_edit: {enabled: true, allowed_paths: [%[2]q]}
  shell: {enabled: true, allowed_executables: [%[3]s], working_dir: %[2]q}
models:
  - {name: %[4]q, path: %[5]q, context_size: %[6]d, residency: PERSISTENT}
llama_server: {path: %[7]q}
`

func startCorrex(ctx context.Context, bin, state, workspace, program, model, path string) (*correxLoop, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(correxConfig, turns, workspace, strings.Join(executables, ", "), model, path, contextSize, program)
	if err := os.WriteFile(filepath.Join(state, "correx.yaml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	l := &correxLoop{tag: fmt.Sprint(time.Now().Unix())}
	for _, args := range [][]string{{"bus", "serve"}, {"tool-worker"}, {"model-worker"}} {
		cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
		cmd.Env = append(os.Environ(), "CORREX_STATE="+state, "CORREX_LOG_LEVEL=error")
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
		if err := cmd.Start(); err != nil {
			l.stop()
			return nil, fmt.Errorf("start %s: %w; make eval builds it", args[0], err)
		}
		l.procs = append(l.procs, cmd)
	}
	if err := l.connect(ctx, state); err != nil {
		l.stop()
		return nil, err
	}
	return l, nil
}

func (l *correxLoop) connect(ctx context.Context, state string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for l.nc == nil {
		l.nc, err = access.Connect(ctx, access.Dial{StateDir: state, Name: "eval", Role: access.Operator})
		if err != nil && ctx.Err() != nil {
			return err
		}
	}
	js, err := jetstream.New(l.nc)
	if err != nil {
		return err
	}
	l.log, err = signedlog.Await(ctx, js, state, "eval", slog.New(slog.DiscardHandler))
	return err
}

func (l *correxLoop) stop() {
	if l.nc != nil {
		l.nc.Close()
	}
	for k := len(l.procs) - 1; k >= 0; k-- {
		_ = l.procs[k].Process.Signal(syscall.SIGTERM)
		_ = l.procs[k].Wait()
	}
}

func (l *correxLoop) do(ctx context.Context, t task) (out outcome, err error) {
	l.n++
	id := events.SessionID(fmt.Sprintf("%s-%s-%d", t.name, l.tag, l.n))
	over := make(chan struct{}, 8)
	sub, err := l.nc.Subscribe(events.PrefixFact+"."+string(id)+".session.main.*", func(m *nats.Msg) {
		switch m.Subject[strings.LastIndexByte(m.Subject, '.')+1:] {
		case "completed", "failed", "cancelled":
			over <- struct{}{}
		}
	})
	if err != nil {
		return out, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	for k, text := range t.say {
		var c events.Command = events.SessionSay{Session: id, Text: text}
		if k == 0 {
			c = events.SessionStart{Session: id, Task: text, Generation: events.GenerationConfig{MaxTokens: maxTokens}}
		}
		if err := l.command(c); err != nil {
			return out, err
		}
		select {
		case <-over:
		case <-ctx.Done():
			_ = l.command(events.SessionCancel{Session: id, Reason: "its time is over"}) // else it goes on beside the next
			return l.count(context.WithoutCancel(ctx), id, out, ctx.Err())
		}
		answer, err := l.answer(ctx, id)
		out.Answers = append(out.Answers, answer)
		if err != nil {
			return l.count(ctx, id, out, err)
		}
	}
	return l.count(ctx, id, out, nil)
}

// command has the kernel carry something out.
func (l *correxLoop) command(c events.Command) error {
	body, err := events.EncodeCommand(c)
	if err != nil {
		return err
	}
	var m *nats.Msg
	for range 200 { // the kernel may not be there yet
		m, err = l.nc.Request(events.PrefixAPI+".operator."+string(c.Verb()), body, 30*time.Second)
		if !errors.Is(err, nats.ErrNoResponders) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	if text := m.Header.Get("Nats-Service-Error"); text != "" {
		return errors.New(text)
	}
	return nil
}

func (l *correxLoop) state(ctx context.Context, id events.SessionID) (session.State, error) {
	s := session.State{ID: id}
	recs, err := l.log.ReadFilter(ctx, events.SessionFilter(id), 1, 0)
	for _, r := range recs {
		s = session.Evolve(s, r)
	}
	return s, err
}

// answer is the last final answer of a session that completed.
func (l *correxLoop) answer(ctx context.Context, id events.SessionID) (string, error) {
	s, err := l.state(ctx, id)
	if err != nil {
		return "", err
	}
	for k := len(s.Inferences) - 1; k >= 0 && s.Status == session.SessionCompleted; k-- {
		if d := s.Inferences[k].Done; d != nil && d.Reply.Final != nil {
			return *d.Reply.Final, nil
		}
	}
	return "", fmt.Errorf("session %s is %s", id, s.Status)
}

// count adds what the log says of the calls and of the model, and passes on why
// there are no more answers.
func (l *correxLoop) count(ctx context.Context, id events.SessionID, out outcome, cause error) (outcome, error) {
	s, err := l.state(ctx, id)
	if err != nil {
		return out, err
	}
	for _, i := range s.Tools {
		if i.Requested != nil && i.End != nil {
			_, well := i.End.(events.ToolExecutionCompleted)
			out.Calls = append(out.Calls, call{i.Requested.Request.Tool, string(i.Requested.Request.Parameters), !well})
		}
	}
	for _, i := range s.Inferences {
		switch {
		case i.Done != nil:
			out.Actions++
			out.Tokens += i.Done.Usage.Prompt + i.Done.Usage.Completion
		case i.Failure != nil && i.Failure.Code == events.FailModelOutput:
			out.Actions++
			out.Invalid++
		}
	}
	return out, cause
}
