package llama

import (
	"context"
	"errors"
	"time"
)

// watch ends the process when it answers nothing any more, or when an inference
// does not get on: a server whose task queue is dead-locked is healthy by its own
// word, and one that has lost a task answers everything else; both would keep
// their client waiting for ever.
func (l lease) watch(ctx context.Context) {
	limit := l.manager.cfg.DeadTimeout
	tick := time.NewTicker(limit / 4)
	defer tick.Stop()
	var before string
	var moved time.Time // when the slots last told another story
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked, cancel := context.WithTimeout(ctx, limit)
		_, slots, err := l.proc.Client().slots(asked)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			l.end("it answered nothing for " + limit.String())
			return
		case err != nil || slots != before:
			before, moved = slots, time.Now()
			continue
		}
		if said, running := l.proc.Client().pulse.since(); running && time.Since(said) >= limit && time.Since(moved) >= limit {
			l.end("an inference did not get on for " + limit.String())
			return
		}
	}
}

// end has the process ended, and says why.
func (l lease) end(reason string) { l.manager.do(func() { l.manager.discard(l.serial, reason) }) }

const (
	settleTimeout = 5 * time.Second // for a slot to be free after its client left
	settlePoll    = 20 * time.Millisecond
)

// settle waits until the server has given up work that was cancelled. One that
// does not is ended: it would answer nobody else.
func (l lease) settle() {
	ctx, cancel := context.WithTimeout(l.proc.Context(), settleTimeout)
	defer cancel()
	for {
		busy, err := l.proc.Client().Busy(ctx)
		var status *StatusError
		if errors.As(err, &status) {
			return // it does not tell
		}
		if err == nil && busy < max(1, l.inFlight()) {
			return
		}
		select {
		case <-l.proc.Context().Done():
			return
		case <-ctx.Done():
			l.end("it did not stop a cancelled inference")
			return
		case <-time.After(settlePoll):
		}
	}
}

// inFlight counts the uses of the process, this one among them.
func (l lease) inFlight() (n int) {
	l.manager.do(func() {
		if l.serial == l.manager.serial {
			n = l.manager.inFlight
		}
	})
	return n
}
