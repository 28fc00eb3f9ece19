package projection

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Rebuild projects the log anew, up to what is its last record now, and puts
// the result at path. It takes the database's lock: [ErrLocked] when a projector
// runs. It calls progress after each transaction. Until all is done the old
// file stays as it is.
func Rebuild(ctx context.Context, path string, id Identity, log Log, progress func(done, last uint64)) error {
	lock, err := Acquire(path)
	if err != nil {
		return err
	}
	defer lock.Release() // the process's end would do as well
	next := path + ".rebuild"
	if err := remove(next); err != nil {
		return fmt.Errorf("rebuild database: %w", err)
	}
	if err := project(ctx, next, id, log, progress); err != nil {
		return fmt.Errorf("rebuild database: %w", errors.Join(err, remove(next)))
	}
	if err := replace(next, path); err != nil {
		return fmt.Errorf("rebuild database: %w", err)
	}
	return nil
}

// project makes a database of the whole log.
func project(ctx context.Context, path string, id Identity, log Log, progress func(done, last uint64)) error {
	last, err := log.Last(ctx)
	if err != nil {
		return err
	}
	return projectThrough(ctx, path, id, log, last, progress)
}

// projectThrough makes a database of the log up to last.
func projectThrough(ctx context.Context, path string, id Identity, log Log, last uint64, progress func(done, last uint64)) error {
	db, err := Open(ctx, path, id)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil { // the writer is to have the file to itself
		return err
	}
	w, err := db.writer(unjournalled)
	if err != nil {
		return err
	}
	err = applyThrough(ctx, w, log, last, progress)
	if err == nil {
		err = w.exec("PRAGMA journal_mode = WAL") // as every reader expects it
	}
	return errors.Join(err, w.Close())
}

// unjournalled is how a connection is opened that makes a new file. Nobody reads it
// before it is whole and synced, and what an error or a kill leaves is thrown away:
// there is nothing to roll back to.
const unjournalled = "_journal_mode=OFF&_synchronous=OFF&_txlock=exclusive"

func applyThrough(ctx context.Context, w *Writer, log Log, last uint64, progress func(done, last uint64)) error {
	if last == 0 {
		return nil
	}
	const batch = 2000
	err := pipe(ctx, log, 1, func(records <-chan incoming) error {
		for r := range records {
			if err := w.take(r); err != nil {
				return err
			}
			if w.count < batch && w.bytes < 8<<20 && r.Seq < last {
				continue
			}
			if err := w.Commit(); err != nil {
				return err
			}
			progress(r.Seq, last)
			if r.Seq >= last {
				return nil
			}
		}
		return nil
	})
	if err == nil && w.At() < last {
		err = context.Cause(ctx)
	}
	return err
}

// replace puts next, a closed database, where path is. The old file goes first:
// an old WAL must never lie beside the new file, and if all ends in between, the
// next start projects anew. Whoever has the old file open keeps reading that.
func replace(next, path string) error {
	if err := syncFile(next); err != nil {
		return err
	}
	if err := remove(path); err != nil {
		return err
	}
	return place(next, path)
}

// place gives next, a closed database that is synced, the name path, durably.
func place(next, path string) error {
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return syncFile(filepath.Dir(path))
}

// syncFile makes a file's content durable, or a directory's names.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// files are those of a database, the file itself first.
func files(path string) []string {
	return []string{path, path + "-wal", path + "-shm", path + "-journal"}
}

// remove removes a database, the file itself first: SQLite drops a WAL whose
// file is not there, but would believe a file whose WAL is not.
func remove(path string) error {
	for _, p := range files(path) {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
