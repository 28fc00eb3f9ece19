package eventlog

import (
	"context"
	"fmt"

	"correx/pkg/events"
)

// Replay folds all records of a filter into s, in stream order, and returns
// what came of it with the sequence of the last record folded (0: none). It
// reads from the leader and needs no consumer.
func Replay[S any](ctx context.Context, l *Log, filter string, s S, evolve func(S, events.Record) S) (S, uint64, error) {
	var last uint64
	err := l.Each(ctx, filter, 1, 0, func(r events.Record) error {
		s, last = evolve(s, r), r.Seq
		return nil
	})
	if err != nil {
		return s, last, fmt.Errorf("replay: %w", err)
	}
	return s, last, nil
}

// A Source is whatever hands over records as [Log.Each] does.
type Source interface {
	Each(ctx context.Context, filter string, from, through uint64, fn func(events.Record) error) error
}

// Sessions returns what reads one session of src up to a sequence (0: nothing of
// it), oldest first, as session.Read and session.Continue want it.
func Sessions(ctx context.Context, src Source) func(id events.SessionID, through uint64, fn func(events.Record) error) error {
	return func(id events.SessionID, through uint64, fn func(events.Record) error) error {
		if through == 0 {
			return nil
		}
		return src.Each(ctx, events.SessionFilter(id), 1, through, fn)
	}
}
