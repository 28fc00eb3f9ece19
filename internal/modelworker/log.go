package modelworker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/approval"
	"correx/internal/eventlog"
	"correx/pkg/events"
)

// openLog opens EVENTS for a worker, which believes an approval by its signature
// alone: what a session is must be the same for everybody who folds it. It waits
// for the stream to be made.
func openLog(ctx context.Context, js jetstream.JetStream, stateDir, source string, logger *slog.Logger) (*eventlog.Log, error) {
	key, err := access.KernelKey(stateDir)
	if err != nil {
		return nil, err
	}
	var verifier *approval.Verifier // set before anything is read
	var log *eventlog.Log
	err = repeat(ctx, func() (err error) {
		log, err = eventlog.Open(ctx, js, eventlog.Options{
			Source: source, Logger: logger,
			Verify: func(r events.Record) error { return verifier.Verify(r) },
		})
		if err != nil {
			logger.Warn("waiting for the log", slog.Any("error", err))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	id := log.Identity()
	verifier, err = approval.NewVerifier(approval.StreamIdentity{Stream: id.Stream, Created: id.Created}, key)
	return log, err
}

// repeat calls f until it succeeds or ctx is done, and returns f's last error.
func repeat(ctx context.Context, f func() error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := f()
		if err == nil {
			return nil
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return err
		case <-t.C:
		}
	}
}

// report appends f to its aggregate, wherever that stands by then, and tries
// again until it is on the log or ctx is done. It is for facts that only this
// worker may write and that hold whatever stands before them.
func report(ctx context.Context, log *eventlog.Log, f events.Fact) error {
	a := events.AggregateOf(f)
	err := repeat(ctx, func() error {
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
	})
	if err != nil {
		return fmt.Errorf("report %s of %s: %w", f.FactName(), a.ID, err)
	}
	return nil
}
