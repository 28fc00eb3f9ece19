package auditor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/leader"
	"correx/pkg/audit"
	"correx/pkg/events"
)

// A Stream is a stream on a server. It is read by consumers that need no
// acknowledgement and vanish.
type Stream struct {
	js   jetstream.JetStream
	lead *leader.Stream
	id   audit.Identity
	all  string // the filter that selects every record
}

// OpenStream asks for the stream's identity.
func OpenStream(ctx context.Context, js jetstream.JetStream, name string) (*Stream, error) {
	s := &Stream{js: js, lead: leader.Of(js, name)}
	info, err := s.lead.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("open stream: %w", err)
	}
	s.id = audit.Identity{Stream: name, Created: info.Created}
	s.all = events.PrefixFact + ".>"
	return s, nil
}

// Identity implements [Source].
func (s *Stream) Identity() audit.Identity { return s.id }

// Last implements [Source].
func (s *Stream) Last(ctx context.Context) (uint64, error) {
	info, err := s.lead.Info(ctx)
	return info.Last, err
}

// Checkpoints implements [Source].
func (s *Stream) Checkpoints(ctx context.Context, fn func(Entry) error) error {
	last, err := s.Last(ctx)
	if err != nil {
		return err
	}
	return s.read(ctx, events.KindFilter(events.System, events.KindAudit), 1, last, fn)
}

// Each implements [Source]. Of a record that a consumer passes over the leader is
// asked: the replica that the consumer runs on may have a hole that the stream
// has not.
func (s *Stream) Each(ctx context.Context, from, through uint64, fn func(Entry) error) error {
	next := max(from, 1)
	err := s.read(ctx, s.all, next, through, func(e Entry) error {
		for ; next < e.Seq; next++ {
			if err := s.fill(ctx, next, fn); err != nil {
				return err
			}
		}
		next++
		return fn(e)
	})
	return err
}

func (s *Stream) fill(ctx context.Context, seq uint64, fn func(Entry) error) error {
	m, err := s.lead.At(ctx, seq)
	if errors.Is(err, leader.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return fn(Entry{Event: audit.Event{Seq: m.Seq, Time: m.Time, Subject: m.Subject, Header: m.Header, Data: m.Data}})
}

// read hands over what filter selects. It ends when the server has no more, or at
// through.
func (s *Stream) read(ctx context.Context, filter string, from, through uint64, fn func(Entry) error) error {
	if through < from {
		return nil
	}
	c, err := s.js.OrderedConsumer(ctx, s.id.Stream, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{filter}, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
	})
	if err != nil {
		return fmt.Errorf("read %s from %d: %w", s.id.Stream, from, err)
	}
	if c.CachedInfo().NumPending == 0 {
		return nil
	}
	it, err := c.Messages(jetstream.PullMaxMessages(1024))
	if err != nil {
		return fmt.Errorf("read %s from %d: %w", s.id.Stream, from, err)
	}
	defer it.Stop()
	for {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return fmt.Errorf("read %s: %w", s.id.Stream, err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("read %s: %w", s.id.Stream, err)
		}
		if meta.Sequence.Stream > through {
			return nil
		}
		if err := fn(entryOf(msg, meta.Sequence.Stream, meta.Timestamp)); err != nil {
			return err
		}
		if meta.NumPending == 0 || meta.Sequence.Stream == through {
			return nil
		}
	}
}

func entryOf(msg jetstream.Msg, seq uint64, at time.Time) Entry {
	return Entry{Event: audit.Event{Seq: seq, Time: at, Subject: msg.Subject(), Header: msg.Headers(), Data: msg.Data()}}
}
