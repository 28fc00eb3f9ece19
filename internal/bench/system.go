package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/pkg/events"
)

// A system is the real thing: the bus and a tool-worker, each in its process,
// and the requester's and the approver's connections.
type system struct {
	state               string
	requester, approver *nats.Conn
	js                  jetstream.JetStream // the requester's

	procs  []*exec.Cmd
	mu     sync.Mutex
	wait   map[string]chan string // by invocation: how it ended
	stages stages
}

const benchConfig = `
tools:
  echo: {enabled: true, tier: T2}
worker: {concurrency: 64}
`

// newSystem starts a system with a tool-worker whose server syncs as told.
func (b *bench) newSystem(ctx context.Context, sync string) (*system, error) {
	return b.startSystem(ctx, sync, benchConfig, "tool-worker")
}

// startSystem starts the bus and a worker.
func (b *bench) startSystem(ctx context.Context, sync, config, worker string) (*system, error) {
	state, err := b.scratch(fmt.Sprintf("system-%s-%d", sync, time.Now().UnixNano()))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(state, "correx.yaml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	s := &system{state: state, wait: map[string]chan string{}}
	s.stages.reset()
	for _, args := range [][]string{{"bus", "serve", "--sync", sync}, {worker}} {
		cmd := exec.Command(filepath.Join(b.root, "bin", args[0]), args[1:]...)
		cmd.Env = append(os.Environ(), "CORREX_STATE="+state, "CORREX_LOG_LEVEL=warn")
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			s.close()
			return nil, fmt.Errorf("start %s: %w; make bench builds it", args[0], err)
		}
		s.procs = append(s.procs, cmd)
	}
	if err := s.connect(ctx, state); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *system) connect(ctx context.Context, state string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, c := range []**nats.Conn{&s.requester, &s.approver} {
		for *c == nil {
			*c, err = access.Connect(ctx, access.Dial{StateDir: state, Name: "bench", Role: access.Operator})
			if err != nil && ctx.Err() != nil {
				return err
			}
		}
	}
	if s.js, err = jetstream.New(s.requester); err != nil {
		return err
	}
	if _, err = s.approver.Subscribe(events.KindFilter("*", events.KindTool), s.see); err != nil {
		return err
	}
	return s.approver.Flush()
}

// see approves what is asked and tells the requester what ended.
func (s *system) see(m *nats.Msg) {
	r := events.Decode(0, time.Time{}, m.Subject, events.Header(m.Header), m.Data)
	s.stages.reached(r.Aggregate.ID, strings.Split(m.Subject, ".")[4])
	switch f := r.Fact.(type) {
	case events.ApprovalRequested:
		body, err := events.EncodeCommand(events.ToolApprove{Invocation: events.ToolInvocationID(f.ID), Digest: f.Digest})
		if err == nil {
			err = s.approver.Publish("cmd.operator.tool.approve", body)
		}
		if err != nil {
			s.end(f.ID, err.Error())
		}
	case events.ToolExecutionCompleted:
		s.end(f.ID, "")
	case events.ToolExecutionFailed:
		s.end(f.ID, f.Reason)
	case events.ToolExecutionRejected:
		s.end(f.ID, f.Reason)
	}
}

func (s *system) end(id, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.wait[id]; ch != nil {
		ch <- how
		delete(s.wait, id)
	}
}

// call asks for one echo and waits until its result is seen.
func (s *system) call(ctx context.Context, id string) error {
	body, err := events.EncodeCommand(events.ToolRun{
		Tool: "echo", Parameters: events.Raw(`{"text":"` + strings.Repeat("x", 200) + `"}`), Invocation: events.ToolInvocationID(id),
	})
	if err != nil {
		return err
	}
	s.stages.reached(id, "asked for")
	return s.send(ctx, "cmd.operator.tool.request", id, body)
}

// send gives a command and waits until what it asked for has ended.
func (s *system) send(ctx context.Context, subject, id string, body []byte) error {
	ch := make(chan string, 1)
	s.mu.Lock()
	s.wait[id] = ch
	s.mu.Unlock()
	if _, err := s.js.Publish(ctx, subject, body); err != nil {
		return err
	}
	select {
	case how := <-ch:
		if how != "" {
			return fmt.Errorf("call %s: %s", id, how)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("call %s: %w", id, ctx.Err())
	}
}

func (s *system) close() {
	for _, c := range []*nats.Conn{s.requester, s.approver} {
		if c != nil {
			c.Close()
		}
	}
	for k := len(s.procs) - 1; k >= 0; k-- {
		_ = s.procs[k].Process.Signal(syscall.SIGTERM)
		_ = s.procs[k].Wait()
	}
}
