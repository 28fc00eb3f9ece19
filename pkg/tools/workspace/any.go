package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// At is the place of a path as it stands: nothing is followed, and what is there
// may be a symbolic link. Unlike that of [Roots.Find] it may lie in what is no
// directory now.
func (r *Roots) At(path string) (Place, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || strings.ContainsRune(path, 0) {
		return Place{}, &DeniedError{Path: path, Reason: "it is not absolute and clean"}
	}
	var found Place
	for _, o := range r.all {
		rel, ok := below(o.real, path)
		if ok && rel != "" && (found.root == nil || len(o.real) > len(found.root.real)) {
			found = Place{root: o, rel: rel}
		}
	}
	if found.root == nil {
		return Place{}, &DeniedError{Path: path, Reason: "it is outside the allowed directories: " + strings.Join(r.Dirs(), ", ")}
	}
	return found, nil
}

// LookAny is [Place.Look] of what may also be a directory or a symbolic link.
func (p Place) LookAny(limit int64) (File, error) {
	dir, err := p.parent()
	if err != nil && noDir(err) {
		return File{}, nil
	}
	if err != nil {
		return File{}, err
	}
	defer dir.Close()
	f, err := lookAny(dir, p.base(), limit)
	if err != nil {
		return File{}, fmt.Errorf("%s %w", p.Path(), err)
	}
	return f, nil
}

// lookAny reads name in dir, as look does.
func lookAny(dir *os.File, name string, limit int64) (File, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return File{}, fmt.Errorf("cannot be looked at: %w", err)
	}
	switch {
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
		s, err := lookDir(dir, name)
		return File{State: s}, err
	case err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK:
		s, err := lookLink(dir, name, st)
		return File{State: s}, err
	}
	return look(dir, name, limit)
}

func lookLink(dir *os.File, name string, st unix.Stat_t) (State, error) {
	target := make([]byte, unix.PathMax+1)
	n, err := unix.Readlinkat(int(dir.Fd()), name, target)
	if errors.Is(err, unix.ENOENT) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("is a symbolic link that cannot be read: %w", err)
	}
	return State{
		Exists: true, Link: string(target[:n]), Dev: st.Dev, Inode: st.Ino, UID: st.Uid, GID: st.Gid,
		Size: st.Size, MTime: st.Mtim.Nano(), CTime: st.Ctim.Nano(), Links: uint64(st.Nlink),
	}, nil
}

// Remove unlinks what is at the place, durably, if it still is what before says: a
// file, a symbolic link, or a directory in which nothing is left.
func (p Place) Remove(before State, rec Recorder) error {
	if rec == nil {
		rec = noRecorder{}
	}
	if before.Links > 1 {
		return p.hardLinked(before)
	}
	dir, err := p.parent()
	if err != nil {
		return fmt.Errorf("open directory of %s: %w", p.Path(), err)
	}
	defer dir.Close()
	if err := rec.Staged(p.Path(), before, State{}); err != nil {
		return fmt.Errorf("delete %s: %w", p.Path(), err)
	}
	if err := unchanged(dir, p.base(), before); err != nil {
		return fmt.Errorf("delete %s: %w", p.Path(), err)
	}
	if err := unlink(dir, p.base(), before); err != nil {
		return fmt.Errorf("delete %s: %w", p.Path(), err)
	}
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("sync directory of %s: %w", p.Path(), err)
	}
	return rec.Applied(p.Path(), State{})
}

// unlink takes away what is s. A directory with something in it is another's.
func unlink(dir *os.File, name string, s State) error {
	flags := 0
	if s.Dir {
		flags = unix.AT_REMOVEDIR
	}
	err := unix.Unlinkat(int(dir.Fd()), name, flags)
	if s.Dir && (errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)) {
		return fmt.Errorf("it %w: somebody put something into it", ErrChanged)
	}
	return err
}

// Link makes the place a symbolic link, in one step and durably, in place of what
// before says, which is no directory.
func (p Place) Link(before State, target string, rec Recorder) (State, error) {
	if before.Links > 1 {
		return State{}, p.hardLinked(before)
	}
	dir, err := p.parent()
	if err != nil {
		return State{}, fmt.Errorf("open directory of %s: %w", p.Path(), err)
	}
	defer dir.Close()
	temp := rec.Temp(p.Path())
	after, err := newLink(dir, temp, target)
	if err == nil {
		staged := after
		staged.CTime = 0 // the rename changes it
		err = rec.Staged(p.Path(), before, staged)
	}
	if err == nil {
		err = exchange(dir, temp, p.base(), before)
	}
	if err != nil {
		_ = unix.Unlinkat(int(dir.Fd()), temp, 0) // or recovery finds it
		return State{}, fmt.Errorf("link %s: %w", p.Path(), err)
	}
	if err := dir.Sync(); err != nil {
		return State{}, fmt.Errorf("sync directory of %s: %w", p.Path(), err)
	}
	now, err := lookAny(dir, p.base(), MaxAny)
	if err != nil || now.Inode != after.Inode {
		return State{}, fmt.Errorf("link %s: %w", p.Path(), errors.Join(err, ErrChanged))
	}
	return now.State, rec.Applied(p.Path(), now.State)
}

func newLink(dir *os.File, name, target string) (State, error) {
	if err := unix.Symlinkat(target, int(dir.Fd()), name); err != nil {
		return State{}, err
	}
	f, err := lookAny(dir, name, MaxAny)
	return f.State, err
}

// exchange renames over what before says.
func exchange(dir *os.File, temp, name string, before State) error {
	if err := unchanged(dir, name, before); err != nil {
		return err
	}
	if !before.Exists {
		return renameNew(int(dir.Fd()), temp, name)
	}
	return unix.Renameat(int(dir.Fd()), temp, int(dir.Fd()), name)
}
