package projection

import (
	"context"
	"sync"

	"correx/pkg/audit"
	"correx/pkg/events"
)

// An incoming is a record with what can be made of it before its turn comes.
type incoming struct {
	events.Record
	content audit.Hash
	hash    audit.Hash
	headers string // as JSON
}

func receive(h *audit.Hasher, r events.Record) incoming {
	content := h.Content(r.Subject, r.Header, r.Data)
	return incoming{r, content, audit.Placed(r.Seq, r.Time, content), headerJSON(r.Header)}
}

// pipe follows log from a sequence on in a goroutine of its own, which also
// hashes, and hands what comes to apply, which has the database to itself. It
// ends when apply returns, when the log gives an error, or with ctx; to apply
// both of the latter look like the end of the records. A ctx that ended is no
// error.
func pipe(ctx context.Context, log Log, from uint64, apply func(<-chan incoming) error) error {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	records := make(chan incoming, 1024)
	var followed error
	var follower sync.WaitGroup
	var hasher audit.Hasher
	follower.Go(func() {
		defer close(records)
		followed = log.Follow(inner, All, from, func(r events.Record) error {
			select {
			case records <- receive(&hasher, r):
				return nil
			case <-inner.Done():
				return inner.Err()
			}
		})
	})
	err := apply(records)
	stopped := inner.Err() != nil || !drained(records)
	stop()
	follower.Wait()
	if err != nil || stopped {
		return err
	}
	return alarmOf(followed)
}

// drained reports whether the records have come to their end.
func drained(records <-chan incoming) bool {
	select {
	case _, more := <-records:
		return !more
	default:
		return false
	}
}
