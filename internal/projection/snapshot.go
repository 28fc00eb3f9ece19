package projection

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"time"

	"correx/pkg/audit"
	"correx/pkg/events"
)

// A Snapshot is a database as it is at one moment, also while a projector
// writes. It may be used by one goroutine at a time.
type Snapshot struct {
	tx *sql.Tx
	at Checkpoint
	id Identity
}

// Snapshot begins one, which the caller closes.
func (db *DB) Snapshot(ctx context.Context) (*Snapshot, error) {
	tx, err := db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", db.path, err)
	}
	s := &Snapshot{tx: tx, id: db.id}
	meta, err := readMeta(ctx, tx)
	if err == nil {
		s.at, err = checkpointOf(meta)
	}
	if err != nil {
		_ = tx.Rollback() // it only read
		return nil, damaged(fmt.Errorf("read %s: %w", db.path, err))
	}
	return s, nil
}

// Close ends the snapshot.
func (s *Snapshot) Close() error { return s.tx.Rollback() }

// At is how far the database says it is.
func (s *Snapshot) At() Checkpoint { return s.at }

// Identity names the stream that it says it was made from.
func (s *Snapshot) Identity() Identity { return s.id }

// A Row is a record as the table events has it. Fault is why the row is not one
// that the projector wrote.
type Row struct {
	audit.Event
	Fault error
}

// Each calls fn with the rows of the sequences from ≤ sequence ≤ through in order.
func (s *Snapshot) Each(ctx context.Context, from, through uint64, fn func(Row) error) error {
	return s.each(ctx, fn, `seq BETWEEN ? AND ?`, int64(min(from, math.MaxInt64)), int64(min(through, math.MaxInt64)))
}

// Checkpoints calls fn with the rows that stand where checkpoints do.
func (s *Snapshot) Checkpoints(ctx context.Context, fn func(Row) error) error {
	a := audit.Checkpoints()
	return s.each(ctx, fn, `subject GLOB ?`, events.PrefixFact+"."+string(a.Session)+"."+string(a.Kind)+".*")
}

func (s *Snapshot) each(ctx context.Context, fn func(Row) error, where string, args ...any) error {
	rows, err := s.tx.QueryContext(ctx, `SELECT seq, time, subject, session, kind, id, fact, route, type, headers, body,
		content_sha256 FROM events WHERE `+where+` ORDER BY seq`, args...)
	if err != nil {
		return damaged(err)
	}
	defer rows.Close()
	var r rawRow
	var h audit.Hasher
	for rows.Next() {
		if err := rows.Scan(&r.seq, &r.time, &r.subject, &r.session, &r.kind, &r.id, &r.fact, &r.route, &r.typ,
			&r.headers, &r.body, &r.content); err != nil {
			return damaged(err)
		}
		if err := fn(r.row(&h)); err != nil {
			return err
		}
	}
	return damaged(rows.Err())
}

// A rawRow is whatever stands in the columns.
type rawRow struct {
	seq                            int64
	time, headers, content         any
	subject, body                  any
	session, kind, id, fact, route any
	typ                            any
}

// row reads what was written and holds each column against what follows from the
// others.
func (r *rawRow) row(h *audit.Hasher) Row {
	out := Row{Event: audit.Event{Seq: uint64(r.seq), Subject: string(bytesOf(r.subject)), Data: bytesOf(r.body)}}
	at, _ := r.time.(string)
	var err error
	if out.Time, err = time.Parse(time.RFC3339Nano, at); err != nil || stamp(out.Time) != at {
		out.Fault = fmt.Errorf("column time is %q, which no projector writes", at)
		return out
	}
	headers, _ := r.headers.(string)
	header, err := parseHeaders(headers)
	if err != nil {
		out.Fault = fmt.Errorf("column headers cannot be read: %w", err)
		return out
	}
	out.Header = header
	if content := h.Content(out.Subject, out.Header, out.Data).String(); r.content != content {
		out.Fault = fmt.Errorf("column content_sha256 is %.16v…, subject, headers and body have %.16s…", r.content, content)
		return out
	}
	out.Fault = r.parts(out.Event)
	return out
}

// parts holds the columns that follow from subject and headers against these.
func (r *rawRow) parts(e audit.Event) error {
	a, name, route, err := events.ParseSubject(e.Subject)
	if err != nil {
		name, route = "", ""
	}
	for _, c := range [...]struct {
		name string
		got  any
		want string
	}{
		{"session", r.session, string(a.Session)}, {"kind", r.kind, string(a.Kind)}, {"id", r.id, a.ID},
		{"fact", r.fact, string(name)}, {"route", r.route, route}, {"type", r.typ, events.Header(e.Header).Get(events.HeaderType)},
	} {
		if got, ok := c.got.(string); !ok || got != c.want {
			return fmt.Errorf("column %s is %.40q; subject and headers say %.40q", c.name, c.got, c.want)
		}
	}
	return nil
}
