package auditor

import (
	"context"

	"correx/internal/projection"
	"correx/pkg/audit"
)

// A Database is the table events of a snapshot.
type Database struct{ s *projection.Snapshot }

// OfDatabase makes a source of a snapshot, which the caller closes.
func OfDatabase(s *projection.Snapshot) *Database { return &Database{s} }

// Identity implements [Source].
func (d *Database) Identity() audit.Identity { return audit.Identity(d.s.Identity()) }

// Last implements [Source]: how far the database says it is.
func (d *Database) Last(context.Context) (uint64, error) { return d.s.At().Seq, nil }

// Each implements [Source].
func (d *Database) Each(ctx context.Context, from, through uint64, fn func(Entry) error) error {
	return d.s.Each(ctx, from, through, func(r projection.Row) error { return fn(Entry(r)) })
}

// Checkpoints implements [Source].
func (d *Database) Checkpoints(ctx context.Context, fn func(Entry) error) error {
	return d.s.Checkpoints(ctx, func(r projection.Row) error { return fn(Entry(r)) })
}

// Says is the state that the database says its records have.
func (d *Database) Says() audit.State { return d.s.At().State }
