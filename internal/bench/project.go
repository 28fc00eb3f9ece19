package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/projection"
	"correx/pkg/events"
)

// project measures records a second from the server into SQLite, by projector
// rebuild, from the start of the program to the file in its place. The floor is the
// same statements in a bare loop, known beforehand, into a database that is set as a
// projector has it that follows (a rebuild itself needs no journal, which is part of
// what it gains). One half of the floor is measured before and one after.
func (b *bench) project(ctx context.Context) (row, error) {
	l, err := b.bulk(ctx)
	if err != nil {
		return row{}, err
	}
	nc, _, log, err := l.open(ctx)
	if err != nil {
		return row{}, err
	}
	defer nc.Close()
	f, err := newBareLoop(ctx, log, b.dir)
	if err != nil {
		return row{}, err
	}
	if err := f.through(ctx, l.last/2); err != nil {
		return row{}, errors.Join(err, f.close())
	}
	r, err := l.rebuild(ctx, l.database())
	if err == nil {
		err = f.through(ctx, l.last)
	}
	if err := errors.Join(err, f.close()); err != nil {
		return row{}, err
	}
	return row{Value: float64(l.last) / r.took.Seconds(), Unit: "records/s", Floor: float64(l.last) / f.took.Seconds()}, nil
}

// database is where the log's database is, once it was rebuilt.
func (l *bulk) database() string { return filepath.Join(l.state, "bulk.db") }

// A bareLoop runs a projector's statements, which another projector made out of
// its sight.
type bareLoop struct {
	log  *eventlog.Log
	db   *projection.DB
	w    *projection.Writer
	bare *projection.Bare
	took time.Duration
	seen []statement
}

type statement struct {
	query string
	args  []any
}

func newBareLoop(ctx context.Context, log *eventlog.Log, dir string) (*bareLoop, error) {
	id := projection.Identity(log.Identity())
	f := &bareLoop{log: log}
	var err error
	if f.db, err = projection.Open(ctx, filepath.Join(dir, "statements.db"), id); err != nil {
		return nil, err
	}
	if f.w, err = f.db.Writer(); err != nil {
		return nil, err
	}
	f.w.Tee = func(query string, args []any) {
		f.seen = append(f.seen, statement{query, append([]any(nil), args...)})
	}
	f.bare, err = projection.OpenBare(ctx, filepath.Join(dir, "bare.db"), id)
	return f, err
}

// bareBatch is a transaction, as a rebuild has them.
const bareBatch = 2000

// through goes on to a sequence, batch by batch.
func (f *bareLoop) through(ctx context.Context, last uint64) error {
	return f.log.Each(ctx, projection.All, f.w.At()+1, last, func(r events.Record) error {
		if err := f.w.Apply(r); err != nil {
			return err
		}
		if r.Seq%bareBatch != 0 && r.Seq != last {
			return nil
		}
		if err := f.w.Commit(); err != nil {
			return err
		}
		return f.run()
	})
}

// run runs what was seen, and measures that alone.
func (f *bareLoop) run() error {
	begin := time.Now()
	for _, s := range f.seen {
		if err := f.bare.Exec(s.query, s.args); err != nil {
			return fmt.Errorf("bare loop: %w", err)
		}
	}
	f.took += time.Since(begin)
	f.seen = f.seen[:0]
	return nil
}

// close takes the WAL in, as a rebuild does at its end.
func (f *bareLoop) close() error {
	begin := time.Now()
	err := f.bare.Close()
	f.took += time.Since(begin)
	return errors.Join(err, f.w.Close(), f.db.Close())
}

// verify measures events a second of bus audit verify. The floor is a bare ordered
// consumer of the same stream, before and after.
func (b *bench) verify(ctx context.Context) (row, error) {
	l, err := b.bulk(ctx)
	if err != nil {
		return row{}, err
	}
	if err := l.ready(ctx); err != nil {
		return row{}, err
	}
	before, err := l.consume(ctx)
	if err != nil {
		return row{}, err
	}
	r, err := l.audit(ctx)
	if err != nil {
		return row{}, err
	}
	after, err := l.consume(ctx)
	if err != nil {
		return row{}, err
	}
	floor := (before + after) / 2
	return row{Value: float64(l.last) / r.took.Seconds(), Unit: "records/s", Floor: float64(l.last) / floor.Seconds()}, nil
}

// ready sees to it that the log has a checkpoint.
func (l *bulk) ready(ctx context.Context) error {
	if _, err := l.rebuild(ctx, l.database()); err != nil {
		return err
	}
	return l.sign(ctx, l.database())
}

// consume is how long an ordered consumer takes that does nothing with what comes.
func (l *bulk) consume(ctx context.Context) (time.Duration, error) {
	nc, js, _, err := l.open(ctx)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	begin := time.Now()
	c, err := js.OrderedConsumer(ctx, "EVENTS", jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy})
	if err != nil {
		return 0, err
	}
	it, err := c.Messages(jetstream.PullMaxMessages(1024))
	if err != nil {
		return 0, err
	}
	defer it.Stop()
	for n := uint64(0); n < l.last; n++ {
		if _, err := it.Next(jetstream.NextContext(ctx)); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}
