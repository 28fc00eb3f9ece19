package toolworker

import (
	"context"
	"fmt"
	"time"

	"correx/internal/eventlog"
	"correx/pkg/events"
)

// announce appends f to the worker's own aggregate, and tries again until it is
// on the log or ctx is done: what is not announced does not exist.
func announce(ctx context.Context, log *eventlog.Log, f events.Fact) error {
	a := events.AggregateOf(f)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := announceOnce(ctx, log, a, f)
		if err == nil {
			return nil
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("announce worker %s: %w", a.ID, err)
		case <-t.C:
		}
	}
}

func announceOnce(ctx context.Context, log *eventlog.Log, a events.Aggregate, f events.Fact) error {
	recs, err := log.Read(ctx, a)
	if err != nil {
		return err
	}
	var last uint64
	if n := len(recs); n > 0 {
		last = recs[n-1].Seq
	}
	_, err = log.Append(ctx, f, last, "")
	return err
}
