package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// A ReadOnlyError says why what is at a place, or its directory, cannot be changed.
type ReadOnlyError struct{ Path, Reason string }

func (e *ReadOnlyError) Error() string { return e.Path + " " + e.Reason }

// Changeable looks whether the file, which is s, may be replaced or deleted, or a
// new one made. Nothing is touched, so that a person need not be asked for what
// would fail anyway. A file that nobody may write stays, though a rename could
// replace it.
func (p Place) Changeable(s State) error {
	dir, at, err := p.nearestDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dirChangeable(dir); err != nil {
		return &ReadOnlyError{at.Path(), err.Error()}
	}
	if !s.Exists {
		return nil
	}
	if s.Mode&0o222 == 0 {
		return &ReadOnlyError{p.Path(), fmt.Sprintf("is read-only (mode %04o), so it is not changed", s.Mode)}
	}
	if err := fileChangeable(dir, p.base()); err != nil {
		return &ReadOnlyError{p.Path(), err.Error()}
	}
	return nil
}

// nearestDir opens the directory that the place is in, or the first above it that
// exists.
func (p Place) nearestDir() (*os.File, Place, error) {
	if p.rel == "." {
		return nil, p, fmt.Errorf("%s is an allowed directory itself, not a file in it", p.Path())
	}
	for d := path.Dir(p.rel); ; d = path.Dir(d) {
		f, err := p.root.openDir(d)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || d == "." {
			return f, Place{root: p.root, rel: d}, err
		}
	}
}

func dirChangeable(dir *os.File) error {
	if flags := attributesOf(int(dir.Fd()), "", unix.AT_EMPTY_PATH); flags&(unix.STATX_ATTR_IMMUTABLE) != 0 {
		return errors.New("is an immutable directory (chattr -i would allow changes)")
	}
	err := unix.Faccessat(int(dir.Fd()), ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	switch {
	case errors.Is(err, unix.EROFS):
		return errors.New("is on a file system that is mounted read-only")
	case err != nil:
		return fmt.Errorf("is a directory in which this worker may not write: %w", err)
	}
	return nil
}

func fileChangeable(dir *os.File, name string) error {
	flags := attributesOf(int(dir.Fd()), name, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case flags&(unix.STATX_ATTR_IMMUTABLE|unix.STATX_ATTR_APPEND) != 0:
		return errors.New("is immutable or append-only (chattr -i -a would allow changes)")
	case flags&unix.STATX_ATTR_MOUNT_ROOT != 0:
		return errors.New("is a mount point and cannot be replaced")
	}
	err := unix.Faccessat(int(dir.Fd()), name, unix.W_OK, unix.AT_EACCESS)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("may not be written by this worker: %w", err)
	}
	return nil
}

// attributesOf are the flags that statx knows; 0 where it knows none.
func attributesOf(fd int, name string, flags int) uint64 {
	var st unix.Statx_t
	if unix.Statx(fd, name, flags|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st) != nil {
		return 0
	}
	return st.Attributes & st.Attributes_mask
}
