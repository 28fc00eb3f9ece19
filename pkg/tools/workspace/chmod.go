package workspace

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Chmod gives the file or directory other permission bits, durably, if it still is
// what before says.
func (p Place) Chmod(before State, mode uint32, rec Recorder) (State, error) {
	if !before.Dir && before.Links > 1 {
		return State{}, p.hardLinked(before)
	}
	dir, err := p.parent()
	if err != nil {
		return State{}, fmt.Errorf("open directory of %s: %w", p.Path(), err)
	}
	defer dir.Close()
	after := before
	after.Mode, after.CTime = mode, 0
	if err := rec.Staged(p.Path(), before, after); err != nil {
		return State{}, fmt.Errorf("change mode of %s: %w", p.Path(), err)
	}
	if err := unchanged(dir, p.base(), before); err != nil {
		return State{}, fmt.Errorf("change mode of %s: %w", p.Path(), err)
	}
	now, err := chmod(dir, p.base(), before, mode)
	if err != nil {
		return State{}, fmt.Errorf("change mode of %s: %w", p.Path(), err)
	}
	if now.SHA256 = before.SHA256; now.Dir { // which directory it is matters only where it does before
		now = after
	}
	return now, rec.Applied(p.Path(), now)
}

// chmod changes the mode of what is s and nothing else, and returns what it is
// then, without its hash.
func chmod(dir *os.File, name string, s State, mode uint32) (State, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return State{}, err
	}
	defer unix.Close(fd)
	now, err := stateOf(fd)
	if err != nil {
		return State{}, err
	}
	if now.Dir != s.Dir || s.Inode != 0 && now.Inode != s.Inode || now.Mode != s.Mode {
		return State{}, fmt.Errorf("it %w", ErrChanged)
	}
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode); err != nil {
		return State{}, err
	}
	if now, err = stateOf(fd); err != nil {
		return State{}, err
	}
	return now, syncNode(dir, name)
}

// stateOf is the state behind a descriptor, without its hash.
func stateOf(fd int) (State, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return State{}, err
	}
	s := State{Exists: true, Dev: st.Dev, Inode: st.Ino, Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		s.Dir = true
		return s, nil
	case unix.S_IFREG:
		s.Size, s.MTime, s.CTime, s.Links = st.Size, st.Mtim.Nano(), st.Ctim.Nano(), uint64(st.Nlink)
		return s, nil
	}
	return State{}, fmt.Errorf("is %s: %w", kindOf(st.Mode), ErrChanged)
}

// syncNode makes what is under name durable. What this process may not open goes
// with its directory.
func syncNode(dir *os.File, name string) error {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) {
		return dir.Sync()
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsync(fd)
}
