package eventlog

import (
	"context"
	"errors"
	"fmt"

	"correx/internal/leader"
	"correx/pkg/events"
)

// errNoEnvelope is why a record does not hold that nobody appended by this
// package. Headers that cannot be parsed, behind which a mark of forgery could
// hide, look the same to a consumer.
var errNoEnvelope = errors.New("carries no ce-id header: it is no fact of Correx, or its headers cannot be read")

// Read returns all records of an aggregate, in order. It asks the leader, so
// that it has everything that was acknowledged before the call.
func (l *Log) Read(ctx context.Context, a events.Aggregate) ([]events.Record, error) {
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("read aggregate %s: %w", a, err)
	}
	return l.ReadFilter(ctx, a.Filter(), 1, 0)
}

// ReadFilter is [Log.Read] of any filter, from ≤ sequence ≤ through; through 0
// means to the end.
func (l *Log) ReadFilter(ctx context.Context, filter string, from, through uint64) ([]events.Record, error) {
	var all []events.Record
	err := l.Each(ctx, filter, from, through, func(r events.Record) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Since is [Log.ReadFilter] to the end.
func (l *Log) Since(ctx context.Context, filter string, from uint64) ([]events.Record, error) {
	return l.ReadFilter(ctx, filter, from, 0)
}

// Each is [Log.ReadFilter] that hands over one record at a time. It stops at
// the first error of fn and returns it. Of the whole stream, to the end is to
// where it ended when Each was called, and a missing record is a [GapError].
func (l *Log) Each(ctx context.Context, filter string, from, through uint64, fn func(events.Record) error) error {
	if l.whole(filter) {
		return l.eachOfAll(ctx, from, through, fn)
	}
	for next := max(from, 1); through == 0 || next <= through; {
		m, err := l.lead.Next(ctx, filter, next)
		if errors.Is(err, leader.ErrNone) || err == nil && through != 0 && m.Seq > through {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s from sequence %d: %w", filter, next, err)
		}
		if err := fn(l.decode(m)); err != nil {
			return err
		}
		next = m.Seq + 1
	}
	return nil
}

// decode makes a record of a message; what does not hold says why.
func (l *Log) decode(m leader.Message) events.Record {
	r := events.Decode(m.Seq, m.Time, m.Subject, events.Header(m.Header), m.Data)
	switch {
	case m.HeaderErr != nil:
		r.Err = fmt.Errorf("headers cannot be read: %w", m.HeaderErr)
	case r.Err == nil && r.Header.Get(events.HeaderID) == "":
		r.Err = errNoEnvelope
	case r.Err == nil && l.opts.Verify != nil:
		r.Err = l.opts.Verify(r)
	}
	if r.Err != nil {
		r.Fact = nil
	}
	return r
}
