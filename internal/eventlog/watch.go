package eventlog

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"correx/internal/leader"
)

var (
	errReconnected = errors.New("the connection was made anew")
	errSilent      = errors.New("the consumer is silent though there are records")
)

// check holds the stream against what was read from it, before a consumer is
// made.
func (f *follower) check(ctx context.Context) error {
	info, err := f.l.info(ctx)
	if err != nil {
		return err
	}
	next := f.next.Load()
	if info.Last+1 < next {
		return &ShrunkError{Stream: f.l.id.Stream, Last: info.Last, Next: next}
	}
	if info.First > next {
		return &GapError{Want: next, Got: info.First}
	}
	if info.Deleted > 0 && !f.whole {
		f.log.Warn("records were deleted from the stream; a filter cannot tell whether they were its own", "deleted", info.Deleted)
	}
	if err := f.checkMark(ctx); err != nil {
		return err
	}
	_, err = f.waiting(ctx, info.Last)
	return err
}

// checkMark looks again at the last record that was handled.
func (f *follower) checkMark(ctx context.Context) error {
	if f.mark == nil {
		return nil
	}
	m, err := f.l.lead.At(ctx, f.mark.seq)
	if err != nil && !errors.Is(err, leader.ErrNone) {
		return err
	}
	if err != nil || *markOf(m) != *f.mark {
		return &RewrittenError{Stream: f.l.id.Stream, Seq: f.mark.seq}
	}
	return nil
}

// waiting asks the leader whether a record waits to be delivered, when the
// stream's last is at least last. Where every record is selected and none is
// there, the stream has lost its end.
func (f *follower) waiting(ctx context.Context, last uint64) (bool, error) {
	next := f.next.Load()
	if last < next {
		return false, nil
	}
	_, err := f.l.lead.Next(ctx, f.filter, next)
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, leader.ErrNone):
		return false, err
	case f.whole:
		return false, &GapError{Want: next}
	}
	return false, nil
}

// watch gives a consumer up when the connection was lost and made again, and
// when it stays silent though the leader has a record for it.
func (f *follower) watch(ctx context.Context, give context.CancelCauseFunc) {
	nc := f.l.js.Conn()
	status := nc.StatusChanged(nats.RECONNECTING, nats.CONNECTED)
	defer nc.RemoveStatusListener(status)
	tick := time.NewTicker(f.l.opts.Watch)
	defer tick.Stop()
	var seen uint64  // f.next at the last tick
	suspect := false // at the last tick a record waited
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-status:
			if s == nats.CONNECTED {
				give(errReconnected)
				return
			}
		case <-tick.C:
			next := f.next.Load()
			if next != seen || !f.idle.Load() {
				seen, suspect = next, false
				continue
			}
			waits, err := f.silent(ctx)
			if final(err) || alarm(err) || waits && suspect && f.next.Load() == seen && f.idle.Load() {
				give(cmp.Or(err, errSilent))
				return
			}
			suspect = waits
		}
	}
}

// silent reports whether a silence is wrong.
func (f *follower) silent(ctx context.Context) (bool, error) {
	info, err := f.l.info(ctx)
	if err != nil {
		return false, err
	}
	if next := f.next.Load(); info.Last+1 < next {
		return false, &ShrunkError{Stream: f.l.id.Stream, Last: info.Last, Next: next}
	}
	return f.waiting(ctx, info.Last)
}
