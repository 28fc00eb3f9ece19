package projection

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process writes the database.
var ErrLocked = errors.New("another projector writes it")

// A Lock is the right to write a database, or to put another in its place. The
// system gives it back when the process ends, however it ends.
type Lock struct{ f *os.File }

// Acquire takes the lock of the database at path, which need not exist yet.
func Acquire(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock database: %w", err)
	}
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock database: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("lock database %s: %w; stop it first, or name another file with --db", path, ErrLocked)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{f}, nil
}

// Locked reports whether a process writes the database at path.
func Locked(path string) bool {
	l, err := Acquire(path)
	if err == nil {
		err = l.Release()
	}
	return errors.Is(err, ErrLocked)
}

// Release gives the lock back.
func (l *Lock) Release() error { return l.f.Close() }
