package projection

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"correx/pkg/events"
)

// A step brings a database from the version of the schema before it to its own,
// so that the database is then what the log makes with that version. It may read
// nothing but the database: what it needs stands in the table events.
type step struct {
	to  int
	run func(ctx context.Context, tx *sql.Tx) error
}

// steps are in order, without a gap, and end with [SchemaVersion]: whoever changes
// that adds one. A database from before the first is made anew.
var steps = []step{
	{4, raiseTiers},
}

// raiseTiers gives invocations the tier of their question and their approval, too.
func raiseTiers(ctx context.Context, tx *sql.Tx) error {
	return eachHeld(ctx, tx, func(r events.Record) error {
		var tier events.Tier
		switch f := r.Fact.(type) {
		case events.ApprovalRequested:
			tier = f.Tier
		case events.ApprovalGranted:
			tier = f.Tier
		}
		_, err := tx.ExecContext(ctx, `UPDATE invocations SET tier = max(tier, ?) WHERE session = ? AND invocation = ?`,
			tier.String(), r.Aggregate.Session, r.Aggregate.ID)
		return err
	}, events.ApprovalRequested{}, events.ApprovalGranted{})
}

// eachHeld calls fn with the records of some facts that hold, in the order of the log.
func eachHeld(ctx context.Context, tx *sql.Tx, fn func(events.Record) error, facts ...events.Fact) error {
	names := make([]events.FactName, len(facts))
	for i, f := range facts {
		names[i] = f.FactName()
	}
	return eachRow(ctx, tx, func(_ []column, row []cell) error {
		values := make([]driver.Value, len(row))
		for i, v := range row {
			values[i] = v
		}
		r, err := recordOf(values)
		if err != nil {
			return err
		}
		return fn(r)
	}, `SELECT seq, time, subject, headers, body, error FROM events
		WHERE holds AND fact IN (SELECT value FROM json_each(?)) ORDER BY seq`, jsonText(names))
}

// migrate takes the steps from the version that the database has, all in one
// transaction: an error or a kill leaves the database as it was. There is none to
// take when the version is the newest.
func (db *DB) migrate(ctx context.Context, from int) error {
	tx, err := db.setup.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("migrate database %s: %w", db.path, err)
	}
	defer tx.Rollback() // after a commit it does nothing
	for _, s := range steps {
		if s.to <= from {
			continue
		}
		if err := s.run(ctx, tx); err != nil {
			return fmt.Errorf("migrate database %s to schema version %d: %w; the database is as it was", db.path, s.to, err)
		}
	}
	if _, err := tx.ExecContext(ctx, "UPDATE meta SET value = ? WHERE key = 'schema'", schemaName()); err != nil {
		return fmt.Errorf("migrate database %s: %w", db.path, err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("migrate database %s: %w", db.path, err)
	}
	db.migrated = from
	return nil
}

// migratable reports whether there is a way to the newest version from one that is
// older.
func migratable(version int) bool {
	return version < SchemaVersion && len(steps) > 0 && version >= steps[0].to-1
}

// schemaOf reads what meta says of the schema. A database that this program can
// neither use nor migrate is an [AlarmError].
func schemaOf(path, name string) (version int, err error) {
	var search string
	if _, err := fmt.Sscanf(name, "version %d, search %s", &version, &search); err != nil {
		return 0, otherSchema(path, name)
	}
	switch {
	case version > SchemaVersion:
		return version, newerSchema(path, version)
	case search != hasFTS, version < SchemaVersion && !migratable(version):
		return version, otherSchema(path, name)
	}
	return version, nil
}

// Migrated is the version of the schema that the database had before it was opened,
// or 0 if it had this one.
func (db *DB) Migrated() int { return db.migrated }
