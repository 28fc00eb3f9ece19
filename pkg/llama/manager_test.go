package llama

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"correx/pkg/events"
)

func TestDefaultModelManager(t *testing.T) {
	ctx := context.Background()

	t.Run("load() same modelId twice → no-op, no process restart", func(t *testing.T) {
		m, s := manage(t, nil)
		d := scripted(t, "one")
		for range 2 {
			if _, err := m.Load(ctx, d); err != nil {
				t.Fatal(err)
			}
		}
		d.ResidencyMode, d.IdleTimeout = events.Dynamic, time.Hour // not launch fields
		if _, err := m.Load(ctx, d); err != nil {
			t.Fatal(err)
		}
		if got := s.all(); len(got) != 1 {
			t.Errorf("it told %v", got)
		}
		if got, ok := m.Current(); !ok || got.ResidencyMode != events.Dynamic || m.Health(ctx) != Healthy {
			t.Errorf("current is %+v %v", got, ok)
		}
		loaded, _ := wait[Loaded](t, s)
		t.Logf("loaded in %v by %s, %d tokens of context", loaded.Latency, loaded.Server, loaded.ContextSize)
		if loaded.ContextSize != d.ContextSize || loaded.Server == "" {
			t.Errorf("it told %+v", loaded)
		}
	})

	t.Run("load() different modelId → kills current process, starts new", func(t *testing.T) {
		m, s := manage(t, nil)
		one, two := scripted(t, "one"), scripted(t, "two")
		if _, err := m.Load(ctx, one); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Load(ctx, two); err != nil {
			t.Fatal(err)
		}
		wider := two
		wider.ContextSize = 2048
		if _, err := m.Load(ctx, wider); err != nil {
			t.Fatal(err)
		}
		var got []string
		var last int
		for _, e := range s.all() {
			switch e := e.(type) {
			case Loaded:
				got, last = append(got, "+"+string(e.Descriptor.ModelID)), e.PID
			case Unloaded:
				got = append(got, "-"+string(e.Descriptor.ModelID))
				if alive(e.PID) {
					t.Errorf("process %d is alive", e.PID)
				}
			}
		}
		if want := []string{"+one", "-one", "+two", "-two", "+two"}; !reflect.DeepEqual(got, want) {
			t.Errorf("it told %v, want %v", got, want)
		}
		if !alive(last) {
			t.Error("the last process is dead")
		}
	})

	t.Run("health check timeout → ModelLoadException, no ModelLoadedEvent emitted", func(t *testing.T) {
		m, s := manage(t, func(c *Config) {
			c.Executable, c.StallTimeout = script(t, "echo hanging >&2; exec sleep 1000"), 200*time.Millisecond
		})
		_, err := m.Load(ctx, scripted(t, "one"))
		var failed *LoadError
		if !errors.As(err, &failed) || !strings.Contains(failed.Reason, "no sign of life") || !reflect.DeepEqual(failed.Log, []string{"hanging"}) {
			t.Errorf("error is %#v", err)
		}
		if _, ok := m.Current(); ok || count[Loaded](s) != 0 || count[LoadFailed](s) != 1 {
			t.Errorf("it told %v", s.all())
		}
	})

	t.Run("ModelLoadedEvent emitted only after health check passes", func(t *testing.T) {
		var m *Manager
		health := Unhealthy
		m, _ = manage(t, func(c *Config) {
			c.Observer = func(e ModelEvent) {
				if _, ok := e.(Loaded); ok { // the owner of the state asks: it is committed
					health = m.proc.Client().Health(ctx)
				}
			}
		})
		if _, err := m.Load(ctx, scripted(t, "one")); err != nil {
			t.Fatal(err)
		}
		if health != Healthy {
			t.Errorf("health was %s when the event came", health)
		}
	})

	t.Run("ModelUnloadedEvent emitted only after process is dead", func(t *testing.T) {
		var lived []int
		m, s := manage(t, func(c *Config) {
			tell := c.Observer
			c.Observer = func(e ModelEvent) {
				if u, ok := e.(Unloaded); ok && alive(u.PID) {
					lived = append(lived, u.PID)
				}
				tell(e)
			}
		})
		if _, err := m.Load(ctx, scripted(t, "one")); err != nil {
			t.Fatal(err)
		}
		if err := m.Unload(ctx, "another", false); err != nil || count[Unloaded](s) != 0 {
			t.Errorf("unload of what is not there: %v", err)
		}
		if err := m.Unload(ctx, "one", false); err != nil {
			t.Fatal(err)
		}
		if count[Unloaded](s) != 1 || lived != nil {
			t.Errorf("it told %v; alive were %v", s.all(), lived)
		}
		if _, ok := m.Current(); ok || m.Health(ctx) != Unhealthy {
			t.Error("something is still there")
		}
	})
}

func TestManagedInferenceProvider(t *testing.T) {
	ctx := context.Background()
	load := func(t *testing.T, mode events.ResidencyMode, idle time.Duration) (*Manager, *Managed, *story) {
		m, s := manage(t, nil)
		d := scripted(t, "one")
		d.ResidencyMode, d.IdleTimeout = mode, idle
		p, err := m.Load(ctx, d)
		if err != nil {
			t.Fatal(err)
		}
		return m, p, s
	}
	infer := func(t *testing.T, p *Managed) {
		t.Helper()
		got, err := p.Infer(ctx, ask("hi"))
		if err != nil || got.Text != "Done." || got.Finish != events.FinishStop || got.Usage.Completion == 0 {
			t.Fatalf("answer is %+v, %v", got, err)
		}
	}

	t.Run("EPHEMERAL: unload() called after infer() completes", func(t *testing.T) {
		_, p, s := load(t, events.Ephemeral, 0)
		infer(t, p)
		wait[Unloaded](t, s)
		infer(t, p) // it comes back for whoever uses it
		if n := count[Loaded](s); n != 2 {
			t.Errorf("loaded %d times", n)
		}
	})

	t.Run("DYNAMIC: idle timer resets on each infer() call", func(t *testing.T) {
		const idle = 300 * time.Millisecond
		_, p, s := load(t, events.Dynamic, idle)
		var last time.Time
		for begun := time.Now(); time.Since(begun) < 3*idle; {
			infer(t, p)
			last = time.Now()
		}
		if got := s.all(); len(got) != 1 {
			t.Fatalf("it told %v", got)
		}
		e, at := wait[Unloaded](t, s)
		if rest := at.Sub(last); rest < idle-50*time.Millisecond || !strings.Contains(e.Reason, "idle") {
			t.Errorf("unloaded %v after the last inference: %s", rest, e.Reason)
		}
	})

	t.Run("PERSISTENT: unload() never called automatically", func(t *testing.T) {
		m, p, s := load(t, events.Persistent, time.Nanosecond)
		infer(t, p)
		infer(t, p)
		if _, ok := m.Current(); !ok || len(s.all()) != 1 {
			t.Errorf("it told %v", s.all())
		}
	})
}

func TestManagerCrash(t *testing.T) {
	m, s := manage(t, nil)
	d := endless(t, "one")
	p, err := m.Load(context.Background(), d)
	if err != nil {
		t.Fatal(err)
	}
	loaded, _ := wait[Loaded](t, s)
	r := ask("hi")
	r.Generation.MaxTokens = 4000
	r.OnDelta = func(string) { _ = syscall.Kill(loaded.PID, syscall.SIGKILL) }
	_, err = p.Infer(context.Background(), r)
	var crash *CrashError
	if !errors.As(err, &crash) || crash.Exit.Signal != "killed" {
		t.Errorf("error is %v", err)
	}
	e, _ := wait[Crashed](t, s)
	if e.Exit != (Exit{-1, "killed"}) || len(e.Log) == 0 || e.PID != loaded.PID {
		t.Errorf("it told %+v", e)
	}
	if err := p.Use(context.Background(), func(ctx context.Context, c *Client) error { return c.Probe(ctx) }); err != nil {
		t.Errorf("after the crash: %v", err)
	}
}

// A server that stands still is ended, and its client told.
func TestManagerDeadlock(t *testing.T) {
	m, s := manage(t, func(c *Config) { c.DeadTimeout, c.StopGrace = 300*time.Millisecond, 100*time.Millisecond })
	p, err := m.Load(context.Background(), endless(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	loaded, _ := wait[Loaded](t, s)
	r := ask("hi")
	r.Generation.MaxTokens = 4000
	r.OnDelta = func(string) { _ = syscall.Kill(loaded.PID, syscall.SIGSTOP) }
	_, err = p.Infer(context.Background(), r)
	if err == nil || !strings.Contains(err.Error(), "answered nothing") {
		t.Errorf("error is %v", err)
	}
	if e, _ := wait[Unloaded](t, s); !strings.Contains(e.Reason, "answered nothing") || alive(e.PID) {
		t.Errorf("it told %+v", e)
	}
}

func TestManagerUnloadDrains(t *testing.T) {
	m, s := manage(t, nil)
	p, err := m.Load(context.Background(), endless(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	began, answered := make(chan struct{}, 200), make(chan Response, 1)
	r := ask("hi")
	r.OnDelta = func(string) { began <- struct{}{} }
	go func() {
		got, err := p.Infer(context.Background(), r)
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	<-began
	if err := m.Unload(context.Background(), "one", false); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-answered:
		if got.Finish != events.FinishLength || got.Usage.Completion != r.Generation.MaxTokens {
			t.Errorf("answer is %+v", got)
		}
	default:
		t.Error("unloaded before the answer was there")
	}
	if count[Unloaded](s) != 1 {
		t.Errorf("it told %v", s.all())
	}
}

func TestManagerUnloadByForce(t *testing.T) {
	m, s := manage(t, nil)
	p, err := m.Load(context.Background(), endless(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	began, failed := make(chan struct{}, 5000), make(chan error, 1)
	r := ask("hi")
	r.Generation.MaxTokens = 3000
	r.OnDelta = func(string) { began <- struct{}{} }
	go func() { _, err := p.Infer(context.Background(), r); failed <- err }()
	<-began
	begun := time.Now()
	if err := m.Unload(context.Background(), "one", true); err != nil {
		t.Fatal(err)
	}
	t.Logf("dead %v after a forced unload in the middle of an answer", time.Since(begun))
	if took := time.Since(begun); took > DefaultStopGrace {
		t.Errorf("it took %v: the client held it", took)
	}
	if err := <-failed; !errors.Is(err, ErrUnloaded) || errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if count[Crashed](s) != 0 {
		t.Errorf("it told %v", s.all())
	}
}

// A cancelled inference gives its slot back, and the model stays.
func TestManagerCancelFreesSlot(t *testing.T) {
	m, s := manage(t, nil)
	p, err := m.Load(context.Background(), endless(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := ask("hi")
	r.Generation.MaxTokens = 3000
	var stopped time.Time
	r.OnDelta = func(string) {
		if stopped.IsZero() {
			stopped = time.Now()
			cancel()
		}
	}
	if _, err := p.Infer(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	t.Logf("slot free %v after the cancel", time.Since(stopped))
	busy := -1
	err = p.Use(context.Background(), func(ctx context.Context, c *Client) (err error) { busy, err = c.Busy(ctx); return err })
	if err != nil || busy != 0 || len(s.all()) != 1 {
		t.Errorf("%d slots are busy: %v; it told %v", busy, err, s.all())
	}
}

func TestManagerOverflow(t *testing.T) {
	m, _ := manage(t, nil)
	_, err := m.Model(scripted(t, "one")).Infer(context.Background(), ask(strings.Repeat("long ", 5000)))
	var status *StatusError
	if !errors.As(err, &status) || !status.Overflow() || status.ContextSize != 4096 || status.PromptTokens < 5000 {
		t.Errorf("error is %v", err)
	}
}

func TestManagerParallelKeepsTheContext(t *testing.T) {
	m, s := manage(t, nil)
	d := scripted(t, "one")
	d.Parallel = 2
	if _, err := m.Load(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	if e, _ := wait[Loaded](t, s); e.ContextSize != d.ContextSize {
		t.Errorf("each request has %d tokens, want %d", e.ContextSize, d.ContextSize)
	}
}

func TestTokenizerOnServer(t *testing.T) {
	m, _ := manage(t, nil)
	err := m.Model(scripted(t, "one")).Use(context.Background(), func(ctx context.Context, c *Client) error {
		marked := "<|im_start|>"
		tokens, exact := c.Tokenizer().Tokenize(ctx, marked)
		if !exact || len(tokens) != len(marked) {
			t.Errorf("a control token in a text is %v %v, want it as plain text", tokens, exact)
		}
		r := ask("hi")
		want, exact := c.Tokenizer().CountMessages(ctx, r.Messages)
		got, err := c.Infer(ctx, r)
		if !exact || got.Usage.Prompt != want {
			t.Errorf("counted %d (%v), the server had %d", want, exact, got.Usage.Prompt)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestManagerLoadErrors(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.gguf")
	if err := os.WriteFile(broken, []byte("GGUFnothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := scripted(t, "m")
	for name, tt := range map[string]struct {
		exe  string
		d    Descriptor
		want string
	}{
		"no file":         {"", Descriptor{ModelID: "m", Path: "/nowhere.gguf"}, "open model file"},
		"no model file":   {"", Descriptor{ModelID: "m", Path: broken}, "exit status 1"},
		"bad flag":        {"", Descriptor{ModelID: "m", Path: good.Path, Args: []string{"--no-such-flag"}}, "does not know --no-such-flag"},
		"bad value":       {"", Descriptor{ModelID: "m", Path: good.Path, Args: []string{"--threads", "many"}}, "exit status 1"},
		"no server":       {"/nowhere/llama-server", good, "find llama-server"},
		"another program": {"/bin/true", good, "no llama-server"},
		"no path":         {"", Descriptor{ModelID: "m"}, "has no path"},
		"own flag":        {"", Descriptor{ModelID: "m", Path: good.Path, Args: []string{"--port=1"}}, "is not for extra flags"},
	} {
		t.Run(name, func(t *testing.T) {
			m, s := manage(t, func(c *Config) {
				if tt.exe != "" {
					c.Executable = tt.exe
				}
			})
			_, err := m.Load(context.Background(), tt.d)
			var failed *LoadError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error is %v, want %q in it", err, tt.want)
			}
			t.Log(err)
			if count[Loaded](s) != 0 {
				t.Errorf("it told %v", s.all())
			}
			if tt.exe == "" {
				if _, err := m.Load(context.Background(), good); err != nil {
					t.Errorf("a good model after it: %v", err)
				}
			}
		})
	}
}

func TestManagerClosed(t *testing.T) {
	m, s := manage(t, nil)
	p, err := m.Load(context.Background(), scripted(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if e, _ := wait[Unloaded](t, s); alive(e.PID) {
		t.Error("it is alive")
	}
	if _, err := p.Infer(context.Background(), ask("hi")); !errors.Is(err, ErrClosed) {
		t.Errorf("error is %v", err)
	}
	if err := m.Unload(context.Background(), "one", false); !errors.Is(err, ErrClosed) {
		t.Errorf("error is %v", err)
	}
	if entries, _ := filepath.Glob(m.cfg.PIDFile + "*"); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}
