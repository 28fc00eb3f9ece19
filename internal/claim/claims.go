package claim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"correx/pkg/events"
)

// A Log is what the protocol needs of the event log. Reads are answered by the
// stream's leader.
type Log interface {
	Read(ctx context.Context, a events.Aggregate) ([]events.Record, error)
	ReadFilter(ctx context.Context, filter string, from, through uint64) ([]events.Record, error)
	// ReadThrough is Read up to the record at seq, which says of itself that it
	// stands behind the one at after (0: it says nothing).
	ReadThrough(ctx context.Context, a events.Aggregate, seq, after uint64) ([]events.Record, error)
	// First returns the record that opened an aggregate, or what was heard to be
	// that: the caller holds it against a signature.
	First(ctx context.Context, a events.Aggregate) (events.Record, error)
	// Append stores f behind the record after, the aggregate's last. A nil
	// error is proof that it did; any other proves nothing.
	Append(ctx context.Context, f events.Fact, after uint64, cause string) (uint64, error)
}

// An Asker asks the worker w. An error means that nobody answered in time.
type Asker interface {
	AskRunning(ctx context.Context, w events.WorkerID, q Question) (Answer, error)
}

// Config is what a worker process brings along. All fields but Clock are required.
type Config struct {
	Worker  events.WorkerID
	Boot    string // of this process
	Log     Log
	Ask     Asker
	AckWait time.Duration // of the durable consumers
	Logger  *slog.Logger
	// Clock, if set, saves a read where an approval's end is far away. It is a
	// bound of the clock that stamps records: no record that is stored by now is
	// stamped later than it says.
	Clock func(ctx context.Context) (time.Time, error)
}

// Claims is the claim protocol of one worker process. It is safe for
// concurrent use.
type Claims struct {
	cfg   Config
	held  registry
	now   func() time.Time
	nonce func() string
}

// New returns the protocol for one process.
func New(cfg Config) (*Claims, error) {
	if err := events.CheckToken(string(cfg.Worker)); err != nil {
		return nil, fmt.Errorf("claim: worker %w", err)
	}
	if cfg.Log == nil || cfg.Ask == nil || cfg.Logger == nil || cfg.Boot == "" {
		return nil, errors.New("claim: boot, log, asker and logger are required")
	}
	if cfg.AckWait <= 0 {
		return nil, fmt.Errorf("claim: ack wait is %s; it must be that of the consumers", cfg.AckWait)
	}
	return &Claims{
		cfg: cfg, now: time.Now, nonce: rand.Text,
		held: registry{held: map[events.Aggregate]*hold{}},
	}, nil
}

// An Outcome is what is to be done with a delivery.
type Outcome uint8

const (
	Drop Outcome = iota // nothing: it will be delivered again after the ack wait
	Keep                // say once that it is being worked on, then nothing
	Ack                 // its end is on the log
	Term                // it will never be worked on
)

func (o Outcome) String() string { return [...]string{"drop", "keep", "ack", "term"}[o] }

// A Delivery is a message of EVENTS as a durable consumer delivered it.
type Delivery struct {
	Aggregate events.Aggregate
	Seq       uint64        // in EVENTS
	After     uint64        // the record that it says it stands behind; 0: unknown. A hint.
	Record    events.Record // the message itself, its signature checked; zero: not given
	Again     bool          // the server says that it was delivered before. A hint: it only saves reads.
}

// Handle takes a delivery through the protocol and returns what is to be done
// with it. The delivery must be kept alive until then. The error says why it
// was dropped or refused, and is for the log.
//
// When ctx is done, work that runs is told so (see [Work]); its end is then
// still published, for a moment (see [Claims.publishing]).
func (c *Claims) Handle(ctx context.Context, j Job, d Delivery) (Outcome, error) {
	if c.held.get(d.Aggregate) != nil {
		return Keep, nil // clause 1
	}
	s, err := c.first(ctx, j, d)
	if err != nil {
		return Drop, err
	}
	if _, left := entry(j, d.Aggregate); s.Phase == Ended && !left {
		return Ack, nil // clause 6
	}
	h, ok := c.held.take(d.Aggregate)
	if !ok {
		return Keep, nil
	}
	defer c.held.drop(d.Aggregate)
	return c.decide(ctx, j, h, d, s)
}

// decide chooses the clause that fits what the first read shows.
func (c *Claims) decide(ctx context.Context, j Job, h *hold, d Delivery, s State) (Outcome, error) {
	if e, left := entry(j, d.Aggregate); left {
		return c.settle(ctx, j, h, e, s) // of an earlier life, or dropped before an end
	}
	switch {
	case s.Phase == Ended:
		return Ack, nil // clause 6
	case s.Phase == Waiting || s.Ready != d.Seq:
		return Term, fmt.Errorf("message %d of %s permits nothing: the log does not hold it (forged, or not allowed where it stands)", d.Seq, d.Aggregate)
	case s.Phase == Ready:
		return c.claim(ctx, j, h, s) // clause 2
	case s.Claim.Worker == c.cfg.Worker:
		return c.again(ctx, j, h, s) // clause 4, of an earlier life
	}
	return c.takeover(ctx, j, h, s) // clause 4
}

// Recover finishes what an earlier process of this worker left in its journal.
// It is called for each entry before the first delivery is handled.
func (c *Claims) Recover(ctx context.Context, j Job, e Entry) error {
	h, ok := c.held.take(e.Aggregate)
	if !ok {
		return nil
	}
	defer c.held.drop(e.Aggregate)
	h.owns(e.Fence.Started)
	s, err := c.readUntil(ctx, j, e.Aggregate)
	if err != nil {
		return err
	}
	_, err = c.settle(ctx, j, h, e, s)
	return err
}

// Running answers whether this process holds what q asks about. What is fenced
// off is no longer held.
func (c *Claims) Running(q Question) Answer {
	a := Answer{Worker: c.cfg.Worker, Boot: c.cfg.Boot}
	if h := c.held.get(events.Aggregate{Session: q.Session, Kind: q.Kind, ID: q.ID}); h != nil {
		a.Running = h.runs(q.Started)
	}
	return a
}

// Poke says that something happened to a which its owner may have to obey. It
// is a doorbell only: the owner reads the log.
func (c *Claims) Poke(a events.Aggregate) {
	if h := c.held.get(a); h != nil {
		h.ring()
	}
}

// Held is how many aggregates this process works on.
func (c *Claims) Held() int { return c.held.size() }

// first reads what d is about. A fresh permission is read as far as it stands
// itself, and no further: that nothing follows it the append proves, and to ask
// for what is not there costs the server more than all the rest.
func (c *Claims) first(ctx context.Context, j Job, d Delivery) (State, error) {
	if _, left := entry(j, d.Aggregate); !d.Again && !left {
		if s, ok := c.signed(ctx, j, d); ok {
			return s, nil
		}
		recs, err := c.cfg.Log.ReadThrough(ctx, d.Aggregate, d.Seq, d.After)
		if err != nil {
			return State{}, fmt.Errorf("read %s: %w", d.Aggregate, err)
		}
		if s := fold(j, d.Aggregate, recs); s.Phase == Ready && s.Ready == d.Seq {
			s.partial = true
			return s, nil
		}
	}
	return c.read(ctx, j, d.Aggregate)
}

// signed is the state behind an approval as far as its signature proves it: the
// kernel signed, over the digest of the request, that this may run. So the
// request, if it has that digest, is all that must be read; what came between the
// two the kernel has folded, and that nothing follows the append proves. A
// preview makes the digest another, and then all is read.
func (c *Claims) signed(ctx context.Context, j Job, d Delivery) (State, bool) {
	if _, ok := d.Record.Fact.(events.ApprovalGranted); !ok || d.Record.Err != nil || d.Record.Seq != d.Seq {
		return State{}, false
	}
	opened, err := c.cfg.Log.First(ctx, d.Aggregate)
	if err != nil {
		return State{}, false
	}
	s := fold(j, d.Aggregate, []events.Record{opened, d.Record})
	s.partial = true
	return s, s.Phase == Ready && s.Ready == d.Seq
}

// read folds an aggregate.
func (c *Claims) read(ctx context.Context, j Job, a events.Aggregate) (State, error) {
	recs, err := c.cfg.Log.Read(ctx, a)
	if err != nil {
		return State{}, fmt.Errorf("read %s: %w", a, err)
	}
	return fold(j, a, recs), nil
}

func fold(j Job, a events.Aggregate, recs []events.Record) State {
	s := j.Rules.Fold(recs)
	s.Aggregate, s.records = a, recs
	return s
}

// readUntil reads until the log answers or ctx is done.
func (c *Claims) readUntil(ctx context.Context, j Job, a events.Aggregate) (State, error) {
	var w wait
	for {
		s, err := c.read(ctx, j, a)
		if err == nil {
			return s, nil
		}
		if w.pause(ctx) != nil {
			return s, err
		}
	}
}

// A wait is a pause that doubles, from 10 ms to 1 s.
type wait struct{ d time.Duration }

// pause waits, and returns an error if ctx is done first.
func (w *wait) pause(ctx context.Context) error {
	w.d = min(max(2*w.d, 10*time.Millisecond), time.Second)
	t := time.NewTimer(w.d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
