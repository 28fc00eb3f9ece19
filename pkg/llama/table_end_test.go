package llama

import (
	"context"
	"syscall"
	"testing"
	"time"
)

func TestManagerDraining(t *testing.T) {
	runRows(t, []row{
		{"wanted", nil, func(b *bed) { // waits for the next load
			u, gone := b.draining()
			again := b.load(b.a)
			b.waiting(1)
			again.pending()
			u.ends()
			gone.ok()
			again.ok()
			b.wants("+a", "-a", "+a")
		}},
		{"another wanted", nil, func(b *bed) {
			u, gone := b.draining()
			other := b.load(b.b)
			b.waiting(1)
			u.ends()
			gone.ok()
			other.ok()
			b.wants("+a", "-a", "+b")
		}},
		{"waiter leaves", nil, func(b *bed) { // it was for him: called off
			u := b.busy()
			other := b.use(b.b)
			b.is(draining)
			other.leave()
			other.fails(context.Canceled)
			b.is(ready)
			u.ends()
			b.wants("+a")
		}},
		{"unload", nil, func(b *bed) {
			u, gone := b.draining()
			second := b.unload(false)
			b.until("both", func() bool { return len(b.m.unloads) == 2 })
			gone.pending()
			u.ends()
			gone.ok()
			second.ok()
			b.wants("+a", "-a")
		}},
		{"forced unload", nil, func(b *bed) {
			u, gone := b.draining()
			b.unload(true).ok()
			gone.ok()
			u.fails(ErrUnloaded)
			b.wants("+a", "-a")
		}},
		{"process ends", nil, func(b *bed) {
			u, gone := b.draining()
			b.signal(b.pid(), syscall.SIGKILL)
			gone.ok()
			u.fails("died: signal: killed")
			b.is(empty)
			b.wants("+a", "!a")
		}},
		{"use ends", nil, func(b *bed) { // the last one does it
			b.a.Parallel = 2
			other := b.busy()
			u, gone := b.draining()
			u.ends()
			b.is(draining)
			gone.pending()
			other.ends()
			gone.ok()
			b.is(empty)
			b.wants("+a", "-a")
		}},
		{"no answer", hurried, func(b *bed) {
			u, gone := b.draining()
			b.signal(b.pid(), syscall.SIGSTOP)
			gone.ok()
			u.fails("answered nothing")
			b.wants("+a", "-a")
		}},
		{"close", nil, func(b *bed) {
			u, gone := b.draining()
			b.call(b.m.Close).ok()
			gone.ok()
			u.fails(ErrClosed)
			b.wants("+a", "-a")
		}},
	})
}

func TestManagerStopping(t *testing.T) {
	runRows(t, []row{
		{"wanted", nil, func(b *bed) {
			gone, hears := b.stopping()
			again := b.load(b.a)
			b.waiting(1)
			again.pending()
			hears()
			gone.ok()
			again.ok()
			b.wants("+a", "-a", "+a")
		}},
		{"another wanted", nil, func(b *bed) {
			gone, hears := b.stopping()
			other := b.load(b.b)
			b.waiting(1)
			hears()
			gone.ok()
			other.ok()
			b.wants("+a", "-a", "+b")
		}},
		{"waiter leaves", nil, func(b *bed) {
			gone, hears := b.stopping()
			other := b.use(b.b)
			b.waiting(1)
			other.leave()
			b.waiting(0)
			hears()
			gone.ok()
			b.is(empty)
			b.wants("+a", "-a")
		}},
		{"unload", nil, func(b *bed) {
			gone, hears := b.stopping()
			second := b.unload(false)
			b.until("both", func() bool { return len(b.m.unloads) == 2 })
			second.pending()
			hears()
			gone.ok()
			second.ok()
			b.wants("+a", "-a")
		}},
		{"forced unload", nil, func(b *bed) {
			gone, hears := b.stopping()
			second := b.unload(true)
			b.until("both", func() bool { return len(b.m.unloads) == 2 })
			second.pending()
			hears()
			gone.ok()
			second.ok()
			b.wants("+a", "-a")
		}},
		{"process ends", nil, func(b *bed) { // however: it was to
			gone, _ := b.stopping()
			b.signal(b.pid(), syscall.SIGKILL)
			gone.ok()
			b.is(empty)
			b.wants("+a", "-a")
		}},
		{"use ends", nil, func(b *bed) { // late, and of no process that matters
			u := b.busy()
			pid := b.pid()
			b.signal(pid, syscall.SIGSTOP)
			gone := b.unload(true)
			u.fails(ErrUnloaded)
			b.is(stopping)
			b.signal(pid, syscall.SIGCONT)
			gone.ok()
			b.is(empty)
			b.wants("+a", "-a")
		}},
		{"clock", func(c *Config) { c.StopGrace = 100 * time.Millisecond }, func(b *bed) { // the grace is over: SIGKILL
			gone, _ := b.stopping()
			gone.ok()
			if e, _ := wait[Unloaded](b.T, b.s); alive(e.PID) {
				b.Error("it is alive")
			}
		}},
		{"close", nil, func(b *bed) {
			gone, hears := b.stopping()
			closed := b.call(b.m.Close)
			b.until("the wish", func() bool { return b.m.closing })
			hears()
			gone.ok()
			closed.ok()
			b.wants("+a", "-a")
		}},
	})
}
