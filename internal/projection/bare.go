package projection

import "context"

// A Bare is a database with the projector's schema, driver and settings, and
// nothing of a projector: what it takes to run the same statements, for whoever
// measures.
type Bare struct {
	db   *DB
	conn *connection
}

// OpenBare makes one at path.
func OpenBare(ctx context.Context, path string, id Identity) (*Bare, error) {
	db, err := Open(ctx, path, id)
	if err != nil {
		return nil, err
	}
	conn, err := openConnection(dsn(path, writing))
	if err != nil {
		return nil, err
	}
	return &Bare{db, conn}, nil
}

// Exec runs a statement, prepared once.
func (b *Bare) Exec(query string, args []any) error { return b.conn.exec(query, args) }

// Close closes the file.
func (b *Bare) Close() error {
	err := b.conn.close()
	if closed := b.db.Close(); err == nil {
		err = closed
	}
	return err
}
