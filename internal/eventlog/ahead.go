package eventlog

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"correx/internal/leader"
	"correx/pkg/events"
)

// ahead is how many records of the whole stream are asked for at once: their
// sequences are known, so that no answer need be waited for.
const ahead = 32

// whole reports whether a filter selects every record.
func (l *Log) whole(filter string) bool { return filter == l.all || filter == ">" }

// An arrival is one record that was asked for, or why there is none.
type arrival struct {
	message leader.Message
	err     error
}

// eachOfAll is [Log.Each] of every record.
func (l *Log) eachOfAll(ctx context.Context, from, through uint64, fn func(events.Record) error) error {
	last, err := l.Last(ctx)
	if err != nil {
		return fmt.Errorf("read all: %w", err)
	}
	if through == 0 || through > last {
		through = last
	}
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	var due [ahead]chan arrival // by sequence
	ask := func(seq uint64) {
		if seq > through {
			return
		}
		c := make(chan arrival, 1)
		due[seq%ahead] = c
		asking.Go(func() {
			m, err := l.lead.At(ctx, seq)
			c <- arrival{m, err}
		})
	}
	from = max(from, 1)
	for i := range uint64(ahead) {
		ask(from + i)
	}
	for seq := from; seq <= through; seq++ {
		a := <-due[seq%ahead]
		ask(seq + ahead)
		if errors.Is(a.err, leader.ErrNone) {
			a.message, a.err = l.afterGap(ctx, seq)
		}
		if a.err != nil {
			return fmt.Errorf("read all from sequence %d: %w", seq, a.err)
		}
		if err := fn(l.decode(a.message)); err != nil {
			return err
		}
	}
	return nil
}

// afterGap looks again for the record at seq: another leader may have it.
func (l *Log) afterGap(ctx context.Context, seq uint64) (leader.Message, error) {
	m, err := l.lead.Next(ctx, l.all, seq)
	switch {
	case errors.Is(err, leader.ErrNone):
		return m, &GapError{Want: seq}
	case err == nil && m.Seq != seq:
		return m, &GapError{Want: seq, Got: m.Seq}
	}
	return m, err
}
