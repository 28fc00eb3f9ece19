package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"correx/internal/leader"
	"correx/pkg/events"
)

// ReadThrough returns the records of an aggregate up to the one at seq, for who
// was told of that, and that it stands behind the one at after (0: not told). It
// asks for them at once instead of for one after another.
//
// That they are all follows from the records themselves: each was accepted on
// the condition that a certain record was the aggregate's last, the server keeps
// that condition with it, and so nothing can be missing between the two. Where a
// record has no such condition, or one of another filter, the aggregate is read
// from its beginning.
func (l *Log) ReadThrough(ctx context.Context, a events.Aggregate, seq, after uint64) ([]events.Record, error) {
	if err := a.Check(); err != nil {
		return nil, fmt.Errorf("read aggregate %s: %w", a, err)
	}
	have, err := l.likely(ctx, a.Filter(), seq, after)
	if err != nil {
		return nil, fmt.Errorf("read aggregate %s: %w", a, err)
	}
	back, err := l.chain(ctx, a.Filter(), seq, have)
	if errors.Is(err, errNoChain) {
		return l.ReadFilter(ctx, a.Filter(), 1, seq)
	}
	if err != nil {
		return nil, fmt.Errorf("read aggregate %s: %w", a, err)
	}
	all := make([]events.Record, 0, len(back))
	for _, m := range slices.Backward(back) {
		all = append(all, l.decode(m))
	}
	return all, nil
}

// likely reads the first message of the filter and those at seq and after.
func (l *Log) likely(ctx context.Context, filter string, seq, after uint64) (map[uint64]leader.Message, error) {
	var got [3]leader.Message
	g, gctx := errgroup.WithContext(ctx)
	one := func(k int, ask func() (leader.Message, error)) {
		g.Go(func() (err error) {
			if got[k], err = ask(); errors.Is(err, leader.ErrNone) {
				return nil
			}
			return err
		})
	}
	one(0, func() (leader.Message, error) { return l.lead.Next(gctx, filter, 1) })
	one(1, func() (leader.Message, error) { return l.lead.At(gctx, seq) })
	if after != 0 {
		one(2, func() (leader.Message, error) { return l.lead.At(gctx, after) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	have := map[uint64]leader.Message{}
	for _, m := range got {
		if m.Seq != 0 {
			have[m.Seq] = m
		}
	}
	return have, nil
}

// First returns the first record of an aggregate, which there must be.
func (l *Log) First(ctx context.Context, a events.Aggregate) (events.Record, error) {
	if err := a.Check(); err != nil {
		return events.Record{}, fmt.Errorf("read aggregate %s: %w", a, err)
	}
	m, err := l.lead.Next(ctx, a.Filter(), 1)
	if err != nil {
		return events.Record{}, fmt.Errorf("read the first of aggregate %s: %w", a, err)
	}
	return l.decode(m), nil
}

// Judge returns the record that a delivered message is, held against all that
// records which are read are held against.
func (l *Log) Judge(seq uint64, subject string, h events.Header, data []byte) events.Record {
	return l.decode(leader.Message{Seq: seq, Subject: subject, Header: h, Data: data})
}

// errNoChain says that the records do not say what they stand behind.
var errNoChain = errors.New("no chain of conditions")

// chain returns the message at seq and all before it, the newest first.
func (l *Log) chain(ctx context.Context, filter string, seq uint64, have map[uint64]leader.Message) ([]leader.Message, error) {
	var back []leader.Message
	for next := seq; next != 0; {
		m, ok := have[next]
		if !ok {
			var err error
			if m, err = l.lead.At(ctx, next); err != nil && !errors.Is(err, leader.ErrNone) {
				return nil, err
			}
		}
		before, ok := condition(m, filter)
		if !ok || m.Seq != next || before >= next || !leader.Matches(filter, m.Subject) {
			return nil, errNoChain
		}
		back = append(back, m)
		next = before
	}
	return back, nil
}

// condition returns the sequence of the record that was the last one of filter
// when m was accepted.
func condition(m leader.Message, filter string) (uint64, bool) {
	h := events.Header(m.Header)
	if m.HeaderErr != nil || h.Get(jetstream.ExpectedLastSubjSeqSubjHeader) != filter {
		return 0, false
	}
	n, err := strconv.ParseUint(h.Get(jetstream.ExpectedLastSubjSeqHeader), 10, 64)
	return n, err == nil
}

// After returns the sequence of the record that a delivered one says it stands
// behind, or 0. It is a hint for [Log.ReadThrough], which checks it.
func After(h events.Header) uint64 {
	n, err := strconv.ParseUint(h.Get(jetstream.ExpectedLastSubjSeqHeader), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
