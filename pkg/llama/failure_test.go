package llama

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"correx/internal/testenv"
	"correx/internal/testmodel"
)

// limited is the real llama-server with so many KiB of address space.
func limited(t *testing.T, kib int) string {
	return script(t, fmt.Sprintf("ulimit -v %d\nexec %s \"$@\"", kib, testenv.LlamaServer(t)))
}

// Memory does not do for the context: it is loaded with half of it, the facts
// say so, and the next load begins there. (Of either the server gives a request
// no more than the model was made for.)
func TestManagerOutOfMemory(t *testing.T) {
	d := scripted(t, "one")
	d.ContextSize = 1 << 21
	m, s := manage(t, func(c *Config) { c.Executable = limited(t, 1_900_000) })
	for range 2 {
		if _, err := m.Model(d).Infer(context.Background(), ask("hi")); err != nil {
			t.Fatal(err)
		}
		if err := m.Unload(context.Background(), "one", false); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range s.all() {
		switch e := e.(type) {
		case Loaded:
			if !e.Halved || e.ContextSize != testmodel.ContextSize || e.Descriptor.ContextSize != d.ContextSize {
				t.Errorf("it told %+v", e)
			}
		case Unloaded:
		default:
			t.Errorf("it told %+v", e)
		}
	}
}

// Half the context is too much as well.
func TestManagerMuchTooLittleMemory(t *testing.T) {
	d := scripted(t, "one")
	d.ContextSize = 4_000_000
	m, s := manage(t, func(c *Config) { c.Executable = limited(t, 500_000) })
	_, err := m.Load(context.Background(), d)
	var failed *LoadError
	if !errors.As(err, &failed) || !failed.OutOfMemory {
		t.Errorf("error is %v", err)
	}
	t.Log(err)
	if e, _ := wait[LoadFailed](t, s); !e.OutOfMemory || count[LoadFailed](s) != 1 {
		t.Errorf("it told %+v", s.all())
	}
}

func TestProcessOutOfMemoryIsRecognised(t *testing.T) {
	for line, want := range map[string]bool{
		"ggml_aligned_malloc: insufficient memory (attempted to allocate 4882.81 MB)": true,
		"CUDA error: out of memory": true,
		"ggml_backend_cuda_buffer_type_alloc_buffer: allocating 9.5 MiB on device 0: cudaMalloc failed: out of memory": true,
		"terminate called after throwing an instance of 'std::bad_alloc'":                                              true,
		"vk::Device::allocateMemory: ErrorOutOfDeviceMemory":                                                           true,
		"GGML_ASSERT(n_tokens > 0) failed":                                                                             false,
		"mmap failed: Cannot allocate memory":                                                                          true,
	} {
		p := &Process{log: newLogRing(&logFile{}), exit: Exit{Code: 1}}
		fmt.Fprintln(p.log, "0.00.1 E "+line)
		if p.OutOfMemory() != want {
			t.Errorf("%s: %v", line, !want)
		}
		p.exit = Exit{}
		if p.OutOfMemory() {
			t.Errorf("a clean exit after %q is out of memory", line)
		}
	}
	killed := &Process{log: newLogRing(&logFile{}), exit: Exit{-1, "killed"}, oomKills: oomKills()}
	if killed.OutOfMemory() {
		t.Error("a kill that was none of the system's is")
	}
}

// A model that crashes again and again is loaded less and less often, then not
// at all for a while, and then once more.
func TestManagerBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := &quick{}, newStory()
		m := newManager(Config{Hold: -1, Observer: s.observe, Backoff: time.Second, BreakAfter: 3, BreakFor: time.Minute}, q.launch, &logFile{})
		defer m.Close()
		crash := func() error {
			return m.Model(named("a")).Use(context.Background(), func(ctx context.Context, _ *Client) error {
				m.do(func() { m.proc.cancel(fmt.Errorf("%w: of something", errDied)) })
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}
		begun := time.Now()
		for k, at := range []time.Duration{time.Second, 3 * time.Second, 6 * time.Second} { // load; pause and load; twice the pause and load
			if err := crash(); err == nil || errors.Is(err, ErrResting) {
				t.Errorf("crash %d: %v", k, err)
			}
			synctest.Wait()
			if took := time.Since(begun); took != at {
				t.Errorf("crash %d came after %v, want %v", k, took, at)
			}
		}
		for range 2 {
			if err := crash(); !errors.Is(err, ErrResting) || !strings.Contains(err.Error(), "3 times in a row") {
				t.Errorf("error is %v", err)
			}
		}
		if _, err := m.Load(context.Background(), named("b")); err != nil || q.loads.Load() != 4 {
			t.Errorf("another model: %v; %d loads", err, q.loads.Load())
		}
		time.Sleep(time.Minute)
		if err := crash(); err == nil || errors.Is(err, ErrResting) { // one more try
			t.Errorf("after the rest: %v", err)
		}
		synctest.Wait()
		if err := crash(); !errors.Is(err, ErrResting) {
			t.Errorf("and then: %v", err)
		}
		time.Sleep(time.Minute)
		if err := m.Model(named("a")).Use(context.Background(), func(context.Context, *Client) error { return nil }); err != nil {
			t.Errorf("a use that is well: %v", err)
		}
		if err := crash(); err == nil || errors.Is(err, ErrResting) {
			t.Errorf("it made good: %v", err)
		}
	})
}

// While a model pauses after a failure, others need not.
func TestManagerPauseLetsOthersGo(t *testing.T) {
	b := newBed(t, func(c *Config) { c.Backoff = time.Hour })
	b.open("fail")
	b.load(b.a).fails("exit status 7")
	b.open("")
	first := b.load(b.a)
	b.waiting(1)
	b.load(b.b).ok()
	first.pending()
	b.wants("?a", "+b")
}

// A server that answers and yet does not get on is ended.
func TestManagerNoProgress(t *testing.T) {
	m, s := manage(t, func(c *Config) { c.DeadTimeout = 400 * time.Millisecond })
	p, err := m.Load(context.Background(), scripted(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	err = p.Use(context.Background(), func(ctx context.Context, c *Client) error {
		defer c.pulse.begin()() // an inference that the server knows nothing of
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "did not get on") {
		t.Errorf("error is %v", err)
	}
	if e, _ := wait[Unloaded](t, s); !strings.Contains(e.Reason, "did not get on") {
		t.Errorf("it told %+v", e)
	}
}

// One that takes its time is not: as long as it gets on.
func TestManagerSlowIsNotDead(t *testing.T) {
	m, s := manage(t, func(c *Config) { c.DeadTimeout = 300 * time.Millisecond })
	r := ask("hi")
	r.Generation.MaxTokens = 60
	got, err := m.Model(endless(t, "one")).Infer(context.Background(), r)
	if err != nil || got.Usage.Completion != 60 || len(s.all()) != 1 {
		t.Errorf("answer is %+v, %v; told %v", got, err, s.all())
	}
	t.Logf("it took %v", got.Latency)
}

// Whatever dies, dies with its socket; what a dead one left is no hindrance.
func TestProcessSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "llama-server.sock")
	l := &Launcher{Executable: testenv.LlamaServer(t), Socket: path}
	for range 2 {
		p, err := l.Launch(context.Background(), scripted(t, "one"))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode()&os.ModeSocket == 0 || p.socket != path {
			t.Errorf("socket: %v, %v", info, err)
		}
		_ = syscall.Kill(p.PID(), syscall.SIGKILL)
		<-p.Done()
		if _, err := os.Stat(path); err == nil {
			t.Error("the socket is still there")
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil { // left behind
			t.Fatal(err)
		}
	}
}

// Where a socket cannot be had, it is a port.
func TestProcessWithoutSocket(t *testing.T) {
	for name, path := range map[string]string{
		"too long a path": filepath.Join(t.TempDir(), strings.Repeat("x", 120)+".sock"),
		"another name":    filepath.Join(t.TempDir(), "socket"),
		"no directory":    "/proc/nothing/llama-server.sock",
	} {
		t.Run(name, func(t *testing.T) {
			l := &Launcher{Executable: testenv.LlamaServer(t), Socket: path}
			p, err := l.Launch(context.Background(), scripted(t, "one"))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop(nil)
			if p.socket != "" || !strings.HasPrefix(p.Client().base, "http://127.0.0.1:") {
				t.Errorf("it listens on %q, %s", p.socket, p.Client().base)
			}
		})
	}
}
