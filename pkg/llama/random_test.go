package llama

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"correx/internal/testenv"
	"correx/pkg/events"
)

// sequences is how many random runs there are; the soak makes more.
func sequences() int {
	if os.Getenv("CORREX_SOAK") != "" {
		return 1000
	}
	return 25
}

// TestManagerAtRandom has several callers do what they like to one manager of
// the real llama-server: load, unload, infer, cancel, kill. Each must have one
// answer that something explains; what the manager told must be a story that can
// be true and holds every inference; and nothing may be left.
func TestManagerAtRandom(t *testing.T) {
	seed := testenv.Seed(t)
	models := []Descriptor{scripted(t, "a"), scripted(t, "b"), scripted(t, "c")}
	var all, errs int64
	for k := range sequences() {
		run := newChaos(t, rand.New(rand.NewPCG(seed, uint64(k))), models)
		run.play()
		run.judge()
		all, errs = all+run.asked.Load(), errs+run.failed.Load()
		if t.Failed() {
			t.Fatalf("that was sequence %d; %s", k, run.log())
		}
	}
	t.Logf("%d requests, of which %d failed as they had to", all, errs)
}

// chaos is one random run.
type chaos struct {
	*testing.T
	m      *Manager
	s      *story
	cfg    Config
	models []Descriptor
	plans  [][]deed

	asked, answered, failed atomic.Int64
	kills, forced           atomic.Int64
	closed                  atomic.Bool

	mu   sync.Mutex
	done []inferred
	says []string
}

// A deed is what a caller does, drawn before the run, so that a seed says it all.
type deed struct {
	what  int // of 100
	model Descriptor
	pause time.Duration
	extra int
}

// An inferred is an inference that was answered.
type inferred struct {
	model    events.ModelID
	from, to time.Time
}

func newChaos(t *testing.T, rng *rand.Rand, models []Descriptor) *chaos {
	c := &chaos{T: t, s: newStory(), models: models}
	modes := []events.ResidencyMode{events.Persistent, events.Dynamic, events.Ephemeral}
	for range 3 + rng.IntN(4) {
		var plan []deed
		for range 4 + rng.IntN(5) {
			d := models[rng.IntN(len(models))]
			d.ResidencyMode, d.IdleTimeout = modes[rng.IntN(3)], time.Duration(1+rng.IntN(60))*time.Millisecond
			d.Parallel = 2
			plan = append(plan, deed{rng.IntN(100), d, time.Duration(rng.IntN(40)) * time.Millisecond, rng.IntN(1000)})
		}
		c.plans = append(c.plans, plan)
	}
	dir := t.TempDir()
	c.cfg = Config{
		Executable: testenv.LlamaServer(t), PIDFile: filepath.Join(dir, "llama-server.pid"), Socket: filepath.Join(dir, "l.sock"),
		LogFile: filepath.Join(dir, "log"), Observer: c.s.observe, StopGrace: 500 * time.Millisecond,
		Hold: time.Duration(rng.IntN(50)-10) * time.Millisecond, Backoff: time.Millisecond, BreakAfter: 4, BreakFor: 20 * time.Millisecond,
	}
	var err error
	if c.m, err = NewManager(c.cfg); err != nil {
		t.Fatal(err)
	}
	return c
}

// play runs every caller's plan, then closes the manager; sometimes before they
// are through.
func (c *chaos) play() {
	c.Helper()
	var callers sync.WaitGroup
	for _, plan := range c.plans {
		callers.Go(func() {
			for _, d := range plan {
				time.Sleep(d.pause)
				c.act(d)
			}
		})
	}
	ended := make(chan struct{})
	early := c.plans[0][0].extra < 200
	go func() {
		if !early {
			callers.Wait()
		} else {
			time.Sleep(time.Duration(c.plans[0][0].extra) * 2 * time.Millisecond)
		}
		c.closed.Store(true)
		c.m.Close()
		callers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		var stacks bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		c.Fatalf("stuck; %s\n%s", c.log(), stacks.String())
	}
}

func (c *chaos) act(d deed) {
	switch {
	case d.what < 55:
		c.infer(d)
	case d.what < 70:
		c.ask("load", d, 0, func(ctx context.Context) error { _, err := c.m.Load(ctx, d.model); return err })
	case d.what < 80:
		force := d.extra%2 == 0
		if force {
			c.forced.Add(1)
		}
		c.ask("unload", d, 0, func(ctx context.Context) error { return c.m.Unload(ctx, d.model.ModelID, force) })
	default:
		c.kill([]syscall.Signal{syscall.SIGKILL, syscall.SIGABRT, syscall.SIGSEGV}[d.extra%3])
	}
}

// infer asks for one answer; every third is cancelled some time later.
func (c *chaos) infer(d deed) {
	patience := time.Duration(0)
	if d.extra%3 == 0 {
		patience = time.Duration(1+d.extra/3) * time.Millisecond
	}
	ran := 0
	c.ask("infer", d, patience, func(ctx context.Context) error {
		return c.m.Model(d.model).Use(ctx, func(ctx context.Context, client *Client) error {
			ran++
			from := time.Now()
			got, err := client.Infer(ctx, ask("hi"))
			if err != nil {
				return err
			}
			if got.Text != "Done." || got.Finish != events.FinishStop {
				c.Errorf("answer is %+v", got)
			}
			c.mu.Lock()
			c.done = append(c.done, inferred{d.model.ModelID, from, time.Now()})
			c.mu.Unlock()
			return nil
		})
	})
	if ran > 1 {
		c.Errorf("one request was answered %d times", ran)
	}
}

// ask does f and holds its error against what there is to explain it.
func (c *chaos) ask(what string, d deed, patience time.Duration, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	if patience > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, patience)
		defer stop()
	}
	defer cancel()
	c.asked.Add(1)
	err := f(ctx)
	c.answered.Add(1)
	c.note("%s %s: %v", what, d.model.ModelID, err)
	if err == nil {
		return
	}
	c.failed.Add(1)
	var crash *CrashError
	var load *LoadError
	explained := false
	switch {
	case errors.Is(err, ErrClosed):
		explained = c.closed.Load()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		explained = ctx.Err() != nil
	case errors.Is(err, ErrUnloaded):
		explained = c.forced.Load() > 0
	case errors.As(err, &crash), errors.Is(err, ErrConnection), errors.Is(err, ErrTruncated):
		explained = c.kills.Load() > 0
	case errors.As(err, &load):
		explained = c.kills.Load() > 0 || strings.Contains(load.Reason, errEmptied.Error())
	}
	if !explained {
		c.Errorf("%s of %s failed, and nothing explains it: %v", what, d.model.ModelID, err)
	}
}

// kill ends the llama-server there is, whatever it does.
func (c *chaos) kill(s syscall.Signal) {
	if pid := filedPID(c.m); pid != 0 {
		c.kills.Add(1)
		c.note("kill %d: %v", pid, s)
		_ = syscall.Kill(pid, s)
	}
}

// judge holds what was told against what happened.
func (c *chaos) judge() {
	c.Helper()
	if a, b := c.asked.Load(), c.answered.Load(); a != b {
		c.Errorf("%d requests, %d answers", a, b)
	}
	type span struct {
		model    events.ModelID
		from, to time.Time
	}
	var spans []span
	var open *Loaded
	crashes := int64(0)
	for i, e := range c.s.all() {
		at, pid := c.s.times[i], 0
		switch e := e.(type) {
		case Loaded:
			if open != nil {
				c.Errorf("%s was loaded while %s was", e.Descriptor.ModelID, open.Descriptor.ModelID)
			}
			open = &e
			spans = append(spans, span{model: e.Descriptor.ModelID, from: at})
			continue
		case LoadFailed:
			if open != nil {
				c.Errorf("%s was not loaded while %s was", e.Descriptor.ModelID, open.Descriptor.ModelID)
			}
			continue
		case Unloaded:
			pid = e.PID
		case Crashed:
			pid = e.PID
			crashes++
		}
		if open == nil || open.PID != pid {
			c.Errorf("process %d ended, which was not told of", pid)
			continue
		}
		spans[len(spans)-1].to, open = at, nil
		if alive(pid) {
			c.Errorf("process %d is alive", pid)
		}
	}
	if open != nil {
		c.Errorf("%s is loaded for ever", open.Descriptor.ModelID)
	}
	if crashes > c.kills.Load() {
		c.Errorf("%d crashes of %d kills", crashes, c.kills.Load())
	}
	for _, i := range c.done {
		held := false
		for _, s := range spans {
			held = held || s.model == i.model && !i.from.Before(s.from) && !i.to.After(s.to)
		}
		if !held {
			c.Errorf("%s answered while it was not loaded", i.model)
		}
	}
	c.leftovers()
}

// leftovers finds processes and files that should be gone.
func (c *chaos) leftovers() {
	c.Helper()
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if line, _ := os.ReadFile(path); bytes.Contains(line, []byte(c.cfg.Socket)) {
			c.Errorf("left behind: %s %q", path, line)
		}
	}
	for _, path := range []string{c.cfg.PIDFile, c.cfg.Socket} {
		if _, err := os.Stat(path); err == nil {
			c.Errorf("left behind: %s", path)
		}
	}
}

func (c *chaos) note(format string, a ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.says = append(c.says, fmt.Sprintf(format, a...))
}

func (c *chaos) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("done: %q; told: %+v", c.says, c.s.all())
}
