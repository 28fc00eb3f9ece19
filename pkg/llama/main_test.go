package llama

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"correx/internal/testenv"
	"correx/internal/testmodel"
	"correx/pkg/events"
)

func TestMain(m *testing.M) {
	if model := os.Getenv("LLAMA_TEST_OWNER"); model != "" {
		ownUntilKilled(model)
	}
	os.Exit(m.Run())
}

// ownUntilKilled is the program that TestProcessOfAKilledOwner kills.
func ownUntilKilled(model string) {
	m, err := NewManager(Config{Executable: os.Getenv("LLAMA_TEST_SERVER"), PIDFile: os.Getenv("LLAMA_TEST_PIDFILE"),
		Observer: func(e ModelEvent) { fmt.Println(e.(Loaded).PID) }})
	if err == nil {
		_, err = m.Load(context.Background(), Descriptor{ModelID: "kill", Path: model, ContextSize: 2048})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// A story collects what a manager told.
type story struct {
	mu     sync.Mutex
	events []ModelEvent
	times  []time.Time
	more   chan struct{} // has one when something came
}

func newStory() *story { return &story{more: make(chan struct{}, 1)} }

func (s *story) observe(e ModelEvent) {
	s.mu.Lock()
	s.events, s.times = append(s.events, e), append(s.times, time.Now())
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *story) all() []ModelEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ModelEvent(nil), s.events...)
}

// wait returns the first event of type T and when it came.
func wait[T ModelEvent](t *testing.T, s *story) (T, time.Time) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		for i, e := range s.events {
			if found, ok := e.(T); ok {
				defer s.mu.Unlock()
				return found, s.times[i]
			}
		}
		s.mu.Unlock()
		select {
		case <-s.more:
		case <-deadline:
			var want T
			t.Fatalf("no %T came; only %v", want, s.all())
		}
	}
}

func count[T ModelEvent](s *story) (n int) {
	for _, e := range s.all() {
		if _, ok := e.(T); ok {
			n++
		}
	}
	return n
}

// manage returns a manager of the real llama-server that is closed at the end.
func manage(t *testing.T, change func(*Config)) (*Manager, *story) {
	t.Helper()
	dir, s := t.TempDir(), newStory()
	cfg := Config{
		Executable: testenv.LlamaServer(t), PIDFile: filepath.Join(dir, "llama-server.pid"),
		LogFile: filepath.Join(dir, "logs", "llama-server.log"), Hold: -1, Observer: s.observe,
	}
	if change != nil {
		change(&cfg)
	}
	m, err := NewManager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		if t.Failed() {
			log, _ := os.ReadFile(cfg.LogFile)
			t.Logf("llama-server.log:\n%s", log)
		}
	})
	return m, s
}

// scripted is a model that says Done; random one that says anything; endless one
// that takes seconds to say nothing.
func scripted(t *testing.T, name string) Descriptor {
	return model(t, name, func(path string) error {
		return testmodel.Scripted(path, testmodel.Script{Default: []string{"Done."}})
	})
}

func endless(t *testing.T, name string) Descriptor {
	return model(t, name, func(path string) error {
		return testmodel.Scripted(path, testmodel.Script{Default: []string{testmodel.Endless}, Slow: true})
	})
}

func model(t *testing.T, name string, write func(path string) error) Descriptor {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := write(path); err != nil {
		t.Fatal(err)
	}
	return Descriptor{ModelID: events.ModelID(name), Path: path, ContextSize: 4096, ResidencyMode: events.Persistent}
}

// script is a program that knows llama-server's flags and then does as body
// says.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "llama-server")
	text := "#!/bin/sh\nif [ \"$1\" = --help ]; then\n" +
		"echo --model --host --port --ctx-size --parallel --alias --api-key\nexit\nfi\n" + body + "\n"
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// dies waits until the process of a pid is dead.
func dies(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); n == 0 {
		t.Fatalf("process %d is still there: %v", pid, err)
	}
}

func alive(pid int) bool { _, err := startTime(pid); return err == nil }

func ask(text string) Request {
	return Request{
		Messages:   []events.ChatMessage{{Role: events.RoleUser, Content: text}},
		Generation: events.GenerationConfig{MaxTokens: 64},
	}
}
