package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"correx/internal/eventlog"
	"correx/pkg/audit"
	"correx/pkg/events"
)

// An Appender is what a checkpointer needs of the event log.
type Appender interface {
	Last(ctx context.Context) (uint64, error)
	Append(ctx context.Context, f events.Fact, after uint64, cause string) (uint64, error)
}

// Due says when a checkpoint is: when so many records are new, or any are and so
// much time has passed since the first of them came. Zero has a default.
type Due struct {
	Every    int           // default 1000
	Interval time.Duration // default 1 min
}

func (d Due) orDefault() Due {
	if d.Every <= 0 {
		d.Every = 1000
	}
	if d.Interval <= 0 {
		d.Interval = time.Minute
	}
	return d
}

// A Checkpointer signs what the database says of the log, and publishes that on
// the log. It never waits for others and never signs what another has signed: it
// appends on the condition that the last checkpoint is the last one it knows.
// Checkpoints by themselves are no reason for another.
type Checkpointer struct {
	p      *Projector
	log    Appender
	key    audit.Signer
	due    Due
	logger *slog.Logger

	covered uint64 // up to here nothing is new: a checkpoint has it
	seq     uint64 // of the last one that was published here
	refused uint64 // the last checkpoint we knew when another was faster
	late    bool   // refused is meant
}

// NewCheckpointer returns one for p's database that signs with key.
func NewCheckpointer(p *Projector, log Appender, key audit.Signer, due Due, logger *slog.Logger) *Checkpointer {
	return &Checkpointer{p: p, log: log, key: key, due: due.orDefault(), logger: logger}
}

// Run publishes checkpoints until ctx ends, and then returns nil. It begins when
// the database has what was on the log before: what others have signed is known
// then. A server that forbids it is a warning, not an error.
func (c *Checkpointer) Run(ctx context.Context) error {
	err := c.run(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, eventlog.ErrDenied):
		c.logger.Warn("no checkpoints are published", "error", err)
		return nil
	}
	return err
}

func (c *Checkpointer) run(ctx context.Context) error {
	last, err := c.log.Last(ctx)
	if err != nil {
		return fmt.Errorf("publish checkpoints: %w", err)
	}
	if err := c.p.Wait(ctx, last); err != nil {
		return err
	}
	timer := time.NewTimer(c.due.Interval)
	defer timer.Stop()
	waiting := true // for the timer, since something is new
	for {
		applied, changed := c.p.progress.now()
		if applied > c.covered && !waiting {
			timer.Reset(c.due.Interval)
			waiting = true
		}
		if applied >= c.covered+uint64(c.due.Every) {
			if err := c.publish(ctx, func(s standing) bool { return s.at.Seq >= s.through+uint64(c.due.Every) }); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-timer.C:
			waiting = false
			before := c.covered // if another has signed since, the time begins anew
			if err := c.publish(ctx, func(s standing) bool { return s.through <= before }); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Publish publishes a checkpoint of what is in the database, if any of that is
// new. That another projector was faster is no error: its checkpoint does as well.
func (c *Checkpointer) Publish(ctx context.Context) error {
	return c.publish(ctx, func(standing) bool { return true })
}

// Finish publishes the last checkpoint, when no [Checkpointer.Run] is under way,
// and waits until the database has it.
func (c *Checkpointer) Finish(ctx context.Context) error {
	if err := c.Publish(ctx); err != nil {
		return err
	}
	return c.p.Wait(ctx, c.seq)
}

func (c *Checkpointer) publish(ctx context.Context, due func(standing) bool) error {
	s, err := c.standing(ctx, func(s standing) bool {
		return due(s) && !(c.late && c.refused == s.last) // what was faster has not come yet
	})
	if err != nil {
		return fmt.Errorf("make checkpoint: %w", err)
	}
	c.covered = s.through
	if !s.anything {
		c.covered = s.at.Seq
	}
	if !s.due {
		return nil
	}
	f, err := audit.Sign(c.key, audit.Identity(c.p.db.id), s.at.State, s.previous, s.prints)
	if err != nil {
		return err
	}
	seq, err := c.log.Append(ctx, f, s.last, "")
	if errors.Is(err, eventlog.ErrConflict) {
		c.late, c.refused = true, s.last
		return nil
	}
	if err != nil {
		return fmt.Errorf("publish checkpoint: %w", err)
	}
	c.logger.Debug("checkpoint", "through", f.Through, "seq", seq, "root", f.Root)
	c.covered, c.seq, c.late = f.Through, seq, false
	return nil
}

// A standing is what a checkpoint is made of, read from one snapshot.
type standing struct {
	at       Checkpoint
	last     uint64 // sequence of the last record among the checkpoints, whatever it is
	previous uint64 // of the last one that our key signed
	through  uint64 // what that is about
	anything bool   // new since then, and no checkpoint
	due      bool   // and a reason to sign; it has fingerprints then
	prints   []audit.Fingerprint
}

func (c *Checkpointer) standing(ctx context.Context, due func(standing) bool) (s standing, err error) {
	tx, err := c.p.db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return s, err
	}
	defer tx.Rollback() // it only reads
	meta, err := readMeta(ctx, tx)
	if err != nil {
		return s, err
	}
	if s.at, err = checkpointOf(meta); err != nil {
		return s, err
	}
	key, err := c.key.PublicKey()
	if err != nil {
		return s, err
	}
	a := audit.Checkpoints()
	err = errors.Join(
		tx.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0) FROM events WHERE session = ? AND kind = ? AND id = ?`,
			a.Session, a.Kind, a.ID).Scan(&s.last),
		tx.QueryRowContext(ctx, `SELECT coalesce(max(seq), 0), coalesce(max(through), 0) FROM audit WHERE key = ?`,
			key).Scan(&s.previous, &s.through),
		tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM events WHERE seq > ? AND NOT (kind = ? AND holds))`,
			s.through, a.Kind).Scan(&s.anything))
	if s.due = err == nil && s.anything && due(s); !s.due {
		return s, err
	}
	s.prints, err = fingerprints(ctx, tx, max(s.through, s.at.Seq-min(s.at.Seq, audit.MaxFingerprints)))
	return s, err
}

// fingerprints are those of the records behind a sequence.
func fingerprints(ctx context.Context, q queryer, behind uint64) (all []audit.Fingerprint, err error) {
	rows, err := q.QueryContext(ctx, `SELECT seq, time, content_sha256 FROM events WHERE seq > ? ORDER BY seq`, behind)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		content, event, err := scanHashes(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, audit.FingerprintOf(content, event))
	}
	return all, rows.Err()
}

// scanHashes reads the hashes of a record from its sequence, time and content's
// hash, as they stand in the database.
func scanHashes(rows *sql.Rows) (content, event audit.Hash, err error) {
	var seq uint64
	var at, text string
	if err := rows.Scan(&seq, &at, &text); err != nil {
		return content, event, err
	}
	stored, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return content, event, fmt.Errorf("time of event %d: %w", seq, err)
	}
	if content, err = audit.ParseHash(text); err != nil {
		return content, event, fmt.Errorf("content_sha256 of event %d: %w", seq, err)
	}
	return content, audit.Placed(seq, stored, content), nil
}
