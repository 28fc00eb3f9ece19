package llama

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"correx/internal/testenv"
	"correx/pkg/events"
)

// A bed is a manager of the real llama-server that is brought into a state of
// the table and then sent a message.
type bed struct {
	*testing.T
	m    *Manager
	s    *story
	a, b Descriptor
	gate string // until this file is there, no load gets on; one that says "fail" ends it
}

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

func newBed(t *testing.T, change func(*Config)) *bed {
	t.Helper()
	dir := t.TempDir()
	b := &bed{T: t, a: scripted(t, "a"), b: scripted(t, "b"), gate: filepath.Join(dir, "gate")}
	b.open("")
	exe := script(t, "while [ ! -e "+b.gate+" ]; do sleep 0.01; done\n"+
		"grep -q fail "+b.gate+" && exit 7\nexec "+testenv.LlamaServer(t)+` "$@"`)
	b.m, b.s = manage(t, func(c *Config) {
		c.Executable, c.StopGrace = exe, 10*time.Second
		if change != nil {
			change(c)
		}
	})
	return b
}

// open lets loads get on, or fail.
func (b *bed) open(how string) {
	b.Helper()
	if err := os.WriteFile(b.gate, []byte(how), 0o600); err != nil {
		b.Fatal(err)
	}
}

// shut lets no load get on.
func (b *bed) shut() {
	b.Helper()
	if err := os.Remove(b.gate); err != nil {
		b.Fatal(err)
	}
}

// until polls what the owner of the state sees.
func (b *bed) until(what string, ok func() bool) {
	b.Helper()
	deadline := time.Now().Add(patience)
	for reached := false; !reached; {
		if !b.m.do(func() { reached = ok() }) {
			reached = ok() // the owner has ended
		}
		if !reached && time.Now().After(deadline) {
			b.Fatalf("waited in vain for %s; told %v", what, b.told())
		}
		time.Sleep(time.Millisecond)
	}
}

// is waits until the manager is in a state.
func (b *bed) is(want phase) {
	b.Helper()
	b.until("the state", func() bool { return b.m.phase == want })
}

// waiting waits until so many wait for a model.
func (b *bed) waiting(n int) {
	b.Helper()
	b.until("the waiters", func() bool { return len(b.m.waiting) == n })
}

// told is what the manager told: "+a" loaded, "-a" unloaded, "!a" crashed, "?a"
// not loaded.
func (b *bed) told() (all []string) {
	for _, e := range b.s.all() {
		switch e := e.(type) {
		case Loaded:
			all = append(all, "+"+string(e.Descriptor.ModelID))
		case Unloaded:
			all = append(all, "-"+string(e.Descriptor.ModelID))
		case Crashed:
			all = append(all, "!"+string(e.Descriptor.ModelID))
		case LoadFailed:
			all = append(all, "?"+string(e.Descriptor.ModelID))
		}
	}
	return all
}

func (b *bed) wants(told ...string) {
	b.Helper()
	if got := b.told(); !slices.Equal(got, told) {
		b.Errorf("it told %v, want %v", got, told)
	}
}

// An answer is what a caller of the manager waits for.
type answer struct {
	b    *bed
	errs chan error
}

func (b *bed) call(f func() error) answer {
	a := answer{b, make(chan error, 1)}
	go func() { a.errs <- f() }()
	return a
}

func (a answer) err() error {
	a.b.Helper()
	select {
	case err := <-a.errs:
		return err
	case <-time.After(patience):
		a.b.Fatalf("no answer came; told %v", a.b.told())
		return nil
	}
}

func (a answer) ok() {
	a.b.Helper()
	if err := a.err(); err != nil {
		a.b.Errorf("answer is %v", err)
	}
}

// fails wants an error that is as target, or says it.
func (a answer) fails(target any) {
	a.b.Helper()
	err := a.err()
	ok := false
	switch target := target.(type) {
	case error:
		ok = errors.Is(err, target)
	case string:
		ok = err != nil && strings.Contains(err.Error(), target)
	}
	if !ok {
		a.b.Errorf("answer is %v, want %v", err, target)
	}
}

// pending fails the test when the answer is there.
func (a answer) pending() {
	a.b.Helper()
	select {
	case err := <-a.errs:
		a.b.Fatalf("answered too early: %v", err)
	default:
	}
}

func (b *bed) load(d Descriptor) answer {
	return b.call(func() error { _, err := b.m.Load(b.Context(), d); return err })
}

func (b *bed) unload(force bool) answer {
	return b.call(func() error { return b.m.Unload(b.Context(), "a", force) })
}

// A use is in flight from its begin until it is ended.
type use struct {
	answer
	began chan struct{}
	done  chan struct{}
	leave context.CancelFunc
}

func (b *bed) use(d Descriptor) use {
	ctx, leave := context.WithCancel(b.Context())
	u := use{began: make(chan struct{}), done: make(chan struct{}), leave: leave}
	u.answer = b.call(func() error {
		return b.m.Model(d).Use(ctx, func(ctx context.Context, c *Client) error {
			close(u.began)
			select {
			case <-u.done:
				return c.Probe(ctx)
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	return u
}

func (u use) begins() use {
	u.b.Helper()
	select {
	case <-u.began:
	case err := <-u.errs:
		u.b.Fatalf("it ended before it began: %v", err)
	case <-time.After(patience):
		u.b.Fatalf("it does not begin; told %v", u.b.told())
	}
	return u
}

func (u use) ends() {
	u.b.Helper()
	close(u.done)
	u.ok()
}

// loading brings the bed there, with one who waits.
func (b *bed) loading() answer {
	b.Helper()
	b.shut()
	a := b.load(b.a)
	b.is(loading)
	b.waiting(1)
	return a
}

// ready brings the bed there.
func (b *bed) ready() {
	b.Helper()
	b.load(b.a).ok()
	b.is(ready)
}

// busy is ready with a use in flight.
func (b *bed) busy() use {
	b.Helper()
	return b.use(b.a).begins()
}

// draining brings the bed there: a use is in flight, and somebody waits for the
// unload.
func (b *bed) draining() (use, answer) {
	b.Helper()
	u := b.busy()
	gone := b.unload(false)
	b.is(draining)
	return u, gone
}

// stopping brings the bed there, with a process that does not hear SIGTERM until
// it may.
func (b *bed) stopping() (gone answer, hears func()) {
	b.Helper()
	b.ready()
	pid := b.pid()
	b.signal(pid, syscall.SIGSTOP)
	gone = b.unload(true)
	b.is(stopping)
	return gone, func() { b.signal(pid, syscall.SIGCONT) }
}

func (b *bed) pid() (pid int) {
	b.m.do(func() { pid = b.m.proc.pid })
	return pid
}

func (b *bed) signal(pid int, s syscall.Signal) {
	b.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		b.Fatal(err)
	}
}

// child is the pid in the pid file: there is one while a model loads, too.
func (b *bed) child() (pid int) {
	b.Helper()
	b.until("the pid file", func() bool { pid = filedPID(b.m); return pid != 0 })
	return pid
}

// filedPID is the pid in a manager's pid file; 0: there is none.
func filedPID(m *Manager) int {
	data, err := os.ReadFile(m.cfg.PIDFile)
	if err != nil {
		return 0
	}
	rec, _ := parsePID(data)
	return rec.PID
}

func kept(d Descriptor, mode events.ResidencyMode, idle time.Duration) Descriptor {
	d.ResidencyMode, d.IdleTimeout = mode, idle
	return d
}
