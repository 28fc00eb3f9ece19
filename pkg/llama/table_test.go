package llama

import (
	"context"
	"syscall"
	"testing"
	"time"

	"correx/pkg/events"
)

// A row is a cell of the state table in [Manager]'s comment: a message, in the
// state that the test is named after, and what has to come of it.
type row struct {
	message string
	config  func(*Config)
	run     func(b *bed)
}

func runRows(t *testing.T, rows []row) {
	for _, r := range rows {
		t.Run(r.message, func(t *testing.T) { r.run(newBed(t, r.config)) })
	}
}

// hurried is a manager that soon takes a silent process for dead.
func hurried(c *Config) { c.DeadTimeout, c.StopGrace = 200*time.Millisecond, 100*time.Millisecond }

func TestManagerEmpty(t *testing.T) {
	runRows(t, []row{
		{"wanted", nil, func(b *bed) {
			b.load(b.a).ok()
			b.is(ready)
			b.wants("+a")
		}},
		{"another wanted", nil, func(b *bed) { // one load each, whoever came first
			one, two := b.use(b.a), b.use(b.b)
			close(one.done)
			close(two.done)
			one.ok()
			two.ok()
			if got := b.told(); len(got) != 3 {
				b.Errorf("it told %v", got)
			}
		}},
		{"waiter leaves", func(c *Config) { c.Backoff = time.Hour }, func(b *bed) { // in the pause after a failure
			b.open("fail")
			b.load(b.a).fails("exit status 7")
			u := b.use(b.a)
			b.waiting(1)
			u.leave()
			u.fails(context.Canceled)
			b.waiting(0)
			b.is(empty)
		}},
		{"unload", nil, func(b *bed) { b.unload(false).ok(); b.is(empty); b.wants() }},
		{"forced unload", nil, func(b *bed) { b.unload(true).ok(); b.is(empty); b.wants() }},
		{"clock", func(c *Config) { c.Backoff = 300 * time.Millisecond }, func(b *bed) { // the pause is over
			b.open("fail")
			b.load(b.a).fails("exit status 7")
			begun := time.Now()
			b.open("")
			b.load(b.a).ok()
			if took := time.Since(begun); took < 200*time.Millisecond {
				b.Errorf("loaded again after %v", took)
			}
			b.wants("?a", "+a")
		}},
		{"close", nil, func(b *bed) {
			b.call(b.m.Close).ok()
			b.load(b.a).fails(ErrClosed)
		}},
	})
}

func TestManagerLoading(t *testing.T) {
	runRows(t, []row{
		{"wanted", nil, func(b *bed) { // joins
			first, second := b.loading(), b.load(b.a)
			b.waiting(2)
			b.open("")
			first.ok()
			second.ok()
			b.wants("+a")
		}},
		{"another wanted", nil, func(b *bed) { // waits for its turn
			first, other := b.loading(), b.load(b.b)
			b.waiting(2)
			other.pending()
			b.open("")
			first.ok()
			other.ok()
			b.wants("+a", "-a", "+b")
		}},
		{"waiter leaves, another waits", nil, func(b *bed) { // given up
			b.shut()
			u := b.use(b.a)
			b.is(loading)
			pid := b.child()
			other := b.load(b.b)
			b.waiting(2)
			u.leave()
			u.fails(context.Canceled)
			dies(b.T, pid)
			b.open("")
			other.ok()
			b.wants("+b")
		}},
		{"wanted, given up meanwhile", func(c *Config) { c.StopGrace = 500 * time.Millisecond }, func(b *bed) { // loaded in its turn
			b.shut()
			u := b.use(b.a)
			b.is(loading)
			b.signal(b.child(), syscall.SIGSTOP) // it takes a while to die
			other := b.load(b.b)
			b.waiting(2)
			u.leave()
			u.fails(context.Canceled)
			b.until("to be given up", func() bool { return b.m.gaveUp != nil })
			late := b.load(b.a)
			b.waiting(2)
			b.open("")
			other.ok()
			late.ok()
			b.wants("+b", "-b", "+a")
		}},
		{"waiter leaves, nobody waits", nil, func(b *bed) { // it goes on: who left may come back
			b.shut()
			u := b.use(b.a)
			b.is(loading)
			b.waiting(1)
			u.leave()
			u.fails(context.Canceled)
			b.open("")
			b.is(ready)
			b.wants("+a")
		}},
		{"unload", nil, func(b *bed) {
			first := b.loading()
			pid := b.child()
			b.unload(false).ok()
			first.fails("to be unloaded")
			if b.is(empty); alive(pid) {
				b.Error("its process is alive")
			}
			b.wants()
		}},
		{"forced unload", nil, func(b *bed) {
			first := b.loading()
			b.unload(true).ok()
			first.fails("to be unloaded")
			b.is(empty)
			b.wants()
		}},
		{"load is up", nil, func(b *bed) {
			first := b.loading()
			b.open("")
			first.ok()
			b.is(ready)
			b.wants("+a")
		}},
		{"load fails", nil, func(b *bed) { // for all who joined
			first, second := b.loading(), b.load(b.a)
			b.waiting(2)
			b.open("fail")
			first.fails("exit status 7")
			second.fails("exit status 7")
			b.is(empty)
			b.wants("?a")
		}},
		{"process ends", nil, func(b *bed) {
			first := b.loading()
			b.signal(b.child(), syscall.SIGKILL)
			first.fails("signal: killed")
			b.is(empty)
			b.wants("?a")
		}},
		{"clock", func(c *Config) { c.StallTimeout = 300 * time.Millisecond }, func(b *bed) { // no sign of life for too long
			b.loading().fails("no sign of life")
			b.is(empty)
			b.wants("?a")
		}},
		{"close", nil, func(b *bed) {
			first := b.loading()
			pid := b.child()
			b.call(b.m.Close).ok()
			if first.fails(ErrClosed); alive(pid) {
				b.Error("its process is alive")
			}
			b.wants()
		}},
	})
}

func TestManagerReady(t *testing.T) {
	runRows(t, []row{
		{"wanted", nil, func(b *bed) { // granted, as far as there are slots
			b.a.Parallel = 2
			one, two := b.busy(), b.busy()
			three := b.use(b.a)
			b.waiting(1)
			one.ends()
			three.begins().ends()
			two.ends()
			b.wants("+a")
		}},
		{"wanted alone", nil, func(b *bed) {
			b.a.Parallel = 3
			one := b.busy()
			alone := b.call(func() error {
				return b.m.Model(b.a).Alone().Use(b.Context(), func(ctx context.Context, c *Client) error {
					b.until("to be alone", func() bool { return b.m.inFlight == 1 && b.m.alone })
					return nil
				})
			})
			b.waiting(1)
			later := b.use(b.a) // does not pass who waited longer
			b.waiting(2)
			alone.pending()
			one.ends()
			alone.ok()
			later.begins().ends()
		}},
		{"another wanted", nil, func(b *bed) { // nothing in flight: at once
			b.ready()
			b.load(b.b).ok()
			b.wants("+a", "-a", "+b")
		}},
		{"another wanted, in use", nil, func(b *bed) { // who waits by then comes first, who comes later does not
			u := b.busy()
			before := b.use(b.a)
			b.waiting(1)
			other := b.load(b.b)
			b.is(draining)
			after := b.load(b.a)
			b.waiting(3)
			u.ends()
			before.begins()
			other.pending()
			before.ends()
			other.ok()
			after.ok()
			b.wants("+a", "-a", "+b", "-b", "+a")
		}},
		{"waiter leaves", nil, func(b *bed) {
			u := b.busy()
			second := b.use(b.a)
			b.waiting(1)
			second.leave()
			second.fails(context.Canceled)
			b.waiting(0)
			u.ends()
			b.wants("+a")
		}},
		{"unload", nil, func(b *bed) {
			b.ready()
			b.unload(false).ok()
			b.is(empty)
			b.wants("+a", "-a")
		}},
		{"forced unload", nil, func(b *bed) {
			u := b.busy()
			b.unload(true).ok()
			u.fails(ErrUnloaded)
			b.wants("+a", "-a")
		}},
		{"process ends", nil, func(b *bed) { // who waits gets the next one
			u := b.busy()
			waits := b.use(b.a)
			b.waiting(1)
			b.signal(b.pid(), syscall.SIGKILL)
			u.fails("died: signal: killed")
			waits.begins().ends()
			b.wants("+a", "!a", "+a")
		}},
		{"use ends", nil, func(b *bed) {
			b.busy().ends()
			b.is(ready)
			b.wants("+a")
		}},
		{"use ends, ephemeral", nil, func(b *bed) {
			b.a = kept(b.a, events.Ephemeral, time.Hour)
			b.busy().ends()
			b.is(empty)
			b.wants("+a", "-a")
		}},
		{"clock, dynamic", nil, func(b *bed) {
			b.a = kept(b.a, events.Dynamic, 50*time.Millisecond)
			b.busy().ends()
			b.is(empty)
			b.wants("+a", "-a")
		}},
		{"clock, ephemeral that nobody used", nil, func(b *bed) {
			b.a = kept(b.a, events.Ephemeral, 50*time.Millisecond)
			b.load(b.a).ok()
			b.is(empty)
			b.wants("+a", "-a")
		}},
		{"clock, held", func(c *Config) { c.Hold = 400 * time.Millisecond }, func(b *bed) { // the hold is over
			b.ready()
			begun := time.Now()
			other := b.load(b.b)
			b.waiting(1)
			b.busy().ends() // until then it is there
			other.ok()
			if took := time.Since(begun); took < 300*time.Millisecond {
				b.Errorf("it was pushed out after %v", took)
			}
			b.wants("+a", "-a", "+b")
		}},
		{"no answer", hurried, func(b *bed) {
			u := b.busy()
			b.signal(b.pid(), syscall.SIGSTOP)
			u.fails("answered nothing")
			b.is(empty)
			b.wants("+a", "-a")
		}},
		{"close", nil, func(b *bed) {
			u := b.busy()
			b.call(b.m.Close).ok()
			u.fails(ErrClosed)
			b.wants("+a", "-a")
		}},
	})
}
