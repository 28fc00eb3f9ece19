package projection

import (
	"context"
	"sync"
	"sync/atomic"
)

// progress tells who waits for a sequence when it is in the database.
type progress struct {
	mu      sync.Mutex
	applied uint64
	changed chan struct{} // closed at the next step
	waiting atomic.Int64  // how many wait: the batch is committed at once
	hurry   chan struct{}
}

func newProgress(applied uint64) *progress {
	return &progress{applied: applied, changed: make(chan struct{}), hurry: make(chan struct{}, 1)}
}

func (p *progress) reach(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.applied = seq
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *progress) now() (uint64, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.applied, p.changed
}

// wait returns when seq is in the database, or with ctx's error.
func (p *progress) wait(ctx context.Context, seq uint64) error {
	if applied, _ := p.now(); applied >= seq {
		return nil
	}
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	select {
	case p.hurry <- struct{}{}:
	default: // somebody else hurries the writer already
	}
	for {
		applied, changed := p.now()
		if applied >= seq {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
