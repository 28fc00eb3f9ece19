package kernel_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"correx/pkg/events"
)

// cited is what came of commands, as a follower of the log sees it.
type cited struct {
	mu   sync.Mutex
	more chan struct{} // closed and replaced whenever something comes
	by   map[events.CommandID]events.Fact
}

// follow collects the facts that cite commands until the test ends.
func (b *bench) follow() *cited {
	c := &cited{more: make(chan struct{}), by: map[events.CommandID]events.Fact{}}
	ctx, stop := context.WithCancel(b.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := b.log.Follow(ctx, "evt.>", 1, c.add); err != nil {
			b.t.Errorf("follow: %v", err)
		}
	}()
	b.t.Cleanup(func() { stop(); <-done })
	return c
}

func (c *cited) add(r events.Record) error {
	d, ok := r.Fact.(interface{ Decided() events.Decision })
	if !ok || d.Decided().Command == "" {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by[d.Decided().Command] = r.Fact
	close(c.more)
	c.more = make(chan struct{})
	return nil
}

// of returns the fact that cites a command; it waits for it.
func (c *cited) of(t *testing.T, id events.CommandID) events.Fact {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		c.mu.Lock()
		f, more := c.by[id], c.more
		c.mu.Unlock()
		if f != nil {
			return f
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("nothing came of command %s", id)
		}
	}
}
