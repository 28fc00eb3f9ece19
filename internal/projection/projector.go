package projection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"correx/internal/eventlog"
	"correx/pkg/events"
)

// All is the filter that selects every fact.
const All = events.PrefixFact + ".>"

// A Log is what a projector needs of the event log.
type Log interface {
	Last(ctx context.Context) (uint64, error)
	ReadFilter(ctx context.Context, filter string, from, through uint64) ([]events.Record, error)
	Follow(ctx context.Context, filter string, from uint64, fn func(events.Record) error) error
}

// A Batch says when a transaction ends: at the first limit that is reached. Who
// waits for a sequence ends it at once. What is zero has a default.
type Batch struct {
	Size  int           // records; default 500
	Bytes int           // of their bodies; default 8 MiB
	Wait  time.Duration // from its first record; default 20 ms
}

func (b Batch) orDefault() Batch {
	if b.Size <= 0 {
		b.Size = 500
	}
	if b.Bytes <= 0 {
		b.Bytes = 8 << 20
	}
	if b.Wait <= 0 {
		b.Wait = 20 * time.Millisecond
	}
	return b
}

// A Projector follows the log into the database.
type Projector struct {
	db       *DB
	log      Log
	batch    Batch
	logger   *slog.Logger
	progress *progress
}

// New returns a projector of log into db.
func New(db *DB, log Log, batch Batch, logger *slog.Logger) *Projector {
	return &Projector{db: db, log: log, batch: batch.orDefault(), logger: logger, progress: newProgress(db.at.Seq)}
}

// Run holds the database against the log and follows it until ctx ends; then it
// commits what it has and returns nil. What does not fit together is an
// [AlarmError], or one of those of the log: nothing is ever skipped.
func (p *Projector) Run(ctx context.Context) error {
	if err := holdAgainst(ctx, p.db.at, p.log); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	w, err := p.db.Writer()
	if err != nil {
		return err
	}
	w.Alarm = func(r events.Record, fault error) {
		p.logger.Warn("a record does not hold", "seq", r.Seq, "subject", r.Subject, "reason", fault)
	}
	return errors.Join(p.follow(ctx, w), w.Close())
}

// holdAgainst looks whether the log has what stood at the checkpoint.
func holdAgainst(ctx context.Context, at Checkpoint, log Log) error {
	last, err := log.Last(ctx)
	if err != nil {
		return fmt.Errorf("hold the database against the log: %w", alarmOf(err))
	}
	if last < at.Seq {
		return shrunkenStream(at.Seq, last)
	}
	if at.Seq == 0 {
		return nil
	}
	recs, err := log.ReadFilter(ctx, All, at.Seq, at.Seq)
	var missing *eventlog.GapError
	if err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("hold the database against the log: %w", alarmOf(err))
	}
	if len(recs) != 1 {
		return changedRecord(at.Seq, "the stream has none")
	}
	if hash := hashRecord(recs[0]); hash != at.Hash {
		return changedRecord(at.Seq, fmt.Sprintf("the stream has one of hash %.12s, the database of %.12s", hash, at.Hash))
	}
	return nil
}

// follow applies the log until ctx ends.
func (p *Projector) follow(ctx context.Context, w *Writer) error {
	return pipe(ctx, p.log, w.At()+1, func(records <-chan incoming) error { return p.write(w, records) })
}

// write applies what comes, batch by batch, until there is no more.
func (p *Projector) write(w *Writer, records <-chan incoming) error {
	linger := time.NewTimer(p.batch.Wait)
	defer linger.Stop()
	for r := range records {
		linger.Reset(p.batch.Wait)
		if err := p.fill(w, r, records, linger.C); err != nil {
			return err
		}
		if err := w.Commit(); err != nil {
			return err
		}
		p.progress.reach(w.At())
	}
	return nil
}

// fill applies the records of one batch, which begins with r.
func (p *Projector) fill(w *Writer, r incoming, records <-chan incoming, over <-chan time.Time) error {
	for {
		if err := w.take(r); err != nil {
			return err
		}
		if w.count >= p.batch.Size || w.bytes >= p.batch.Bytes {
			return nil
		}
		var ok bool
		if r, ok = p.next(records, over); !ok {
			return nil
		}
	}
}

// next waits for one more record of the batch; ok is false when it is at its end.
func (p *Projector) next(records <-chan incoming, over <-chan time.Time) (r incoming, ok bool) {
	select {
	case r, ok = <-records:
		return r, ok
	default:
	}
	if p.progress.waiting.Load() > 0 {
		return r, false
	}
	select {
	case r, ok = <-records:
		return r, ok
	case <-over:
		return r, false
	case <-p.progress.hurry:
		return r, false
	}
}

// Wait returns when seq is in the database, or with ctx's error. The batch at
// hand is not held back for it.
func (p *Projector) Wait(ctx context.Context, seq uint64) error { return p.progress.wait(ctx, seq) }

// Applied is the last sequence that is in the database.
func (p *Projector) Applied() uint64 { seq, _ := p.progress.now(); return seq }
