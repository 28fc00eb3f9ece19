package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A Copy is what a backup holds.
type Copy struct {
	Path   string `json:"path"`
	Events uint64 `json:"events"`   // rows of the table events
	Last   uint64 `json:"last_seq"` // the sequence of its checkpoint
}

// unfinished is what a backup's name ends with until it is whole.
const unfinished = ".unfinished"

// Backup copies the database at from, as it is at one moment, into the new file
// to, also while a projector writes from. A file at to is an error that is
// [fs.ErrExist]. The copy is written beside to, synced and then renamed: a kill
// leaves no part of it under that name, and the next backup of that name clears
// up. It holds the lock of to, so that no projector begins a database there
// meanwhile.
func Backup(ctx context.Context, from, to string) (Copy, error) {
	source, err := OpenReadOnly(ctx, from) // it must be one of ours
	if err == nil {
		err = source.Close()
	}
	if err != nil {
		return Copy{}, err
	}
	if err := vacant(to); err != nil {
		return Copy{}, fmt.Errorf("back up database: %w", err)
	}
	lock, err := Acquire(to)
	if err != nil {
		return Copy{}, err
	}
	defer lock.Release() // the process's end would do as well
	next := to + unfinished
	if err := remove(next); err != nil {
		return Copy{}, fmt.Errorf("back up database: %w", err)
	}
	c, err := copyInto(ctx, from, next)
	if err == nil {
		err = syncFile(next)
	}
	if err == nil {
		err = vacant(to) // still
	}
	if err == nil {
		err = place(next, to)
	}
	if err != nil {
		return Copy{}, fmt.Errorf("back up database: %w", damaged(errors.Join(err, remove(next))))
	}
	c.Path = to
	return c, nil
}

// vacant is an error if something has the name path, or is what SQLite would take
// for the journal of a database there.
func vacant(path string) error {
	for _, p := range files(path) {
		_, err := os.Lstat(p)
		if err == nil {
			return fmt.Errorf("%s: %w; name another file, or remove it first", p, fs.ErrExist)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// copyInto makes next of one snapshot of from, and says what is in it.
func copyInto(ctx context.Context, from, next string) (Copy, error) {
	// SQLite takes an empty file; this one nobody else can read from the start.
	f, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return Copy{}, err
	}
	if err := f.Close(); err != nil {
		return Copy{}, err
	}
	// A connection that is query_only may not write another file either.
	if err := onOne(from, "mode=rw", func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "VACUUM INTO ?", dsn(next, "mode=rw"))
		return err
	}); err != nil {
		return Copy{}, fmt.Errorf("copy %s: %w", from, err)
	}
	var c Copy
	err = onOne(next, writing, func(db *sql.DB) error { // WAL, as every reader expects it
		meta, err := readMeta(ctx, db)
		if err != nil {
			return err
		}
		at, err := checkpointOf(meta)
		if err != nil {
			return err
		}
		c.Last = at.Seq
		return db.QueryRowContext(ctx, "SELECT count(*) FROM events").Scan(&c.Events)
	})
	if err != nil {
		return Copy{}, fmt.Errorf("read the copy: %w", err)
	}
	return c, nil
}

// onOne calls fn with one connection to the file at path, and closes it.
func onOne(path, options string, fn func(*sql.DB) error) error {
	db, err := sql.Open("sqlite3", dsn(path, options))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	return errors.Join(fn(db), db.Close())
}
