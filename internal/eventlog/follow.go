package eventlog

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/leader"
	"correx/pkg/events"
)

// How a follower pulls. The server keeps sending while more than half of the
// batch is outstanding, and says that it lives once a heartbeat.
const (
	pullBatch     = 1024
	pullHeartbeat = time.Second
	pullExpiry    = 30 * time.Second
	// consumerIdle is how long the server keeps a consumer that nobody pulls
	// from; nobody deletes it, so that no role needs the right to.
	consumerIdle = 30 * time.Second
	// shortPause is before the first new consumer; it doubles while nothing comes.
	shortPause = 20 * time.Millisecond
	// confirmations is how often in a row the stream must give the same reason
	// for an alarm: while leaders change, one that is no longer it may answer.
	confirmations = 4
)

// Follow calls fn with every record that filter selects from sequence from on,
// in stream order, each once: those that are there and then those that come. It
// blocks until ctx ends, and then returns nil.
//
// It goes on across restarts of servers and connections. It ends with the error
// of fn, with [GapError] when records are missing (between two of them only
// where filter selects the whole stream; at the beginning for every filter),
// [ShrunkError], [RewrittenError] or [ForeignStreamError]: each of them is an
// alarm that no repetition mends.
func (l *Log) Follow(ctx context.Context, filter string, from uint64, fn func(events.Record) error) error {
	f := &follower{
		l: l, filter: filter, whole: l.whole(filter),
		fn: fn, log: l.log.With("filter", filter),
	}
	f.next.Store(max(from, 1))
	pause, alarms := shortPause, 0
	for {
		before := f.next.Load()
		err := f.run(ctx)
		if ctx.Err() != nil && !final(err) {
			return nil
		}
		if f.next.Load() != before {
			pause, alarms = shortPause, 0
		}
		if alarm(err) {
			alarms++
		}
		if final(err) || alarms == confirmations {
			return fmt.Errorf("follow %s: %w", filter, err)
		}
		f.log.Info("following anew", "next", f.next.Load(), slog.Any("reason", err))
		if leader.Pause(ctx, pause) != nil {
			return nil
		}
		pause = min(2*pause, time.Second)
	}
}

// A handlerError is what fn returned.
type handlerError struct {
	seq uint64
	err error
}

func (e *handlerError) Error() string { return fmt.Sprintf("handle record %d: %v", e.seq, e.err) }
func (e *handlerError) Unwrap() error { return e.err }

// final reports whether another consumer would meet the same.
func final(err error) bool {
	var handler *handlerError
	var foreign *ForeignStreamError
	return errors.As(err, &handler) || errors.As(err, &foreign) || errors.Is(err, ErrDenied) ||
		errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, jetstream.ErrStreamNotFound)
}

// alarm reports whether err says that records are not where they were.
func alarm(err error) bool {
	var gap *GapError
	var shrunk *ShrunkError
	var rewritten *RewrittenError
	return errors.As(err, &gap) || errors.As(err, &shrunk) || errors.As(err, &rewritten)
}

// A follower is one call of Follow. Next, idle and handled are read by its
// watchdog, too.
type follower struct {
	l      *Log
	filter string
	whole  bool // filter selects every record, so that sequences have no gap
	fn     func(events.Record) error
	log    *slog.Logger

	next atomic.Uint64 // the first sequence that was not handled
	idle atomic.Bool   // waiting for the server
	mark *mark         // the last record that was handled
}

// A mark recognises a record.
type mark struct {
	seq     uint64
	nanos   int64 // since 1970, when it was stored
	subject string
	sum     [sha256.Size]byte
}

func markOf(m leader.Message) *mark {
	return &mark{m.Seq, m.Time.UnixNano(), m.Subject, sha256.Sum256(m.Data)}
}

// run follows through one consumer, until it fails or is given up.
func (f *follower) run(ctx context.Context) error {
	if err := f.check(ctx); err != nil {
		return err
	}
	it, err := f.pull(ctx)
	if err != nil {
		return err
	}
	defer it.Stop()
	ctx, give := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { f.watch(ctx, give) })
	defer watch.Wait()
	defer give(nil)
	for delivered := uint64(1); ; delivered++ {
		f.idle.Store(true)
		msg, err := it.Next(jetstream.NextContext(ctx))
		f.idle.Store(false)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("next record: %w", err)
		}
		if err := f.take(ctx, msg, delivered); err != nil {
			return err
		}
	}
}

// pull makes a consumer that begins at f.next, and an iterator over it.
func (f *follower) pull(ctx context.Context) (jetstream.MessagesContext, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	name := "follow-" + rand.Text()
	c, err := f.l.js.CreateConsumer(ctx, f.l.id.Stream, jetstream.ConsumerConfig{
		Name: name, FilterSubject: f.filter, AckPolicy: jetstream.AckNonePolicy,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.next.Load(),
		MemoryStorage: true, Replicas: 1, InactiveThreshold: consumerIdle,
	})
	if err != nil && leader.Mentions(f.l.js.Conn(), name) {
		return nil, fmt.Errorf("make consumer of %s (needs CONSUMER.CREATE): %w", f.l.id.Stream, ErrDenied)
	}
	if err != nil {
		return nil, fmt.Errorf("make consumer: %w", err)
	}
	it, err := c.Messages(jetstream.PullMaxMessages(pullBatch), jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.PullExpiry(pullExpiry), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return nil, fmt.Errorf("pull from consumer: %w", err)
	}
	return it, nil
}

// take hands over one message, the delivered-th of its consumer.
func (f *follower) take(ctx context.Context, msg jetstream.Msg, delivered uint64) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("read delivery: %w", err)
	}
	seq, next := meta.Sequence.Stream, f.next.Load()
	if meta.Sequence.Consumer != delivered || seq < next {
		return fmt.Errorf("delivery %d (sequence %d) came when %d (from sequence %d) was due", meta.Sequence.Consumer, seq, delivered, next)
	}
	if f.whole && seq != next {
		if err := f.fill(ctx, seq); err != nil {
			return err
		}
	}
	return f.hand(leader.Message{
		Seq: seq, Time: meta.Timestamp, Subject: msg.Subject(), Header: msg.Headers(), Data: msg.Data(),
	})
}

// fill asks the leader for what a consumer skipped before seq: the replica that
// it runs on may have a hole that the stream has not.
func (f *follower) fill(ctx context.Context, seq uint64) error {
	for next := f.next.Load(); next < seq; next++ {
		m, err := f.l.lead.At(ctx, next)
		if errors.Is(err, leader.ErrNone) {
			return &GapError{Want: next, Got: seq}
		}
		if err != nil {
			return err
		}
		if err := f.hand(m); err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) hand(m leader.Message) error {
	if err := f.fn(f.l.decode(m)); err != nil {
		return &handlerError{m.Seq, err}
	}
	f.mark = markOf(m)
	f.next.Store(m.Seq + 1)
	return nil
}
