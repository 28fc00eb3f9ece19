package claim

import (
	"context"
	"sync"
	"time"
)

// A follower looks after work that runs: at each ring of the doorbell, and every
// third of the ack wait in case a ring got lost, it reads the log. It costs
// nothing while the work is shorter than that.
type follower struct {
	c      *Claims
	ctx    context.Context // of the reading; it ends with stop
	done   context.CancelFunc
	cancel context.CancelCauseFunc // of the work
	j      Job
	h      *hold
	t      Task

	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
	busy    bool // a check is under way
	once    bool // and another must follow it
	last    uint64
	wg      sync.WaitGroup
}

// follow starts to look after t; cancel is called with the reason when the log
// wants the work to stop.
func (c *Claims) follow(ctx context.Context, cancel context.CancelCauseFunc, j Job, h *hold, t Task) *follower {
	reading, done := context.WithCancel(ctx)
	f := &follower{c: c, ctx: reading, done: done, cancel: cancel, j: j, h: h, t: t}
	f.mu.Lock()
	f.timer = time.AfterFunc(c.cfg.AckWait/3, f.look)
	f.mu.Unlock()
	h.onRing(f.look)
	return f
}

// look has the log read, soon and by one goroutine at a time.
func (f *follower) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return
	}
	if f.busy {
		f.once = true
		return
	}
	f.busy = true
	f.wg.Go(f.checks)
}

func (f *follower) checks() {
	for {
		f.check()
		f.mu.Lock()
		if !f.once || f.stopped {
			f.busy = false
			if !f.stopped {
				f.timer.Reset(f.c.cfg.AckWait / 3)
			}
			f.mu.Unlock()
			return
		}
		f.once = false
		f.mu.Unlock()
	}
}

// check reads the log once and obeys it.
func (f *follower) check() {
	s, err := f.c.read(f.ctx, f.j, f.t.State.Aggregate)
	if err != nil {
		return // it will be read again
	}
	if !s.owned(f.t.Fence()) {
		f.h.fence()
		f.cancel(ErrFenced)
		return // last stays: an end behind what fenced us must be refused
	}
	f.mu.Lock()
	f.last = max(f.last, s.Last)
	f.mu.Unlock()
	if s.Phase == Cancelling {
		f.cancel(Cancelled{s.Cancel})
	}
}

// stop ends the looking and returns the last sequence at which the claim was seen
// to hold. It may be called again.
func (f *follower) stop() uint64 {
	f.h.onRing(nil)
	f.done()
	f.mu.Lock()
	f.stopped = true
	f.timer.Stop()
	f.mu.Unlock()
	f.wg.Wait()
	return f.last
}
