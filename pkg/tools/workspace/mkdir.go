package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Mkdir makes the place a directory, durably, and those above it that are missing.
// It is an error if anything is there.
func (p Place) Mkdir(rec Recorder) (State, error) {
	if rec == nil {
		rec = noRecorder{}
	}
	if err := p.makeParents(); err != nil {
		return State{}, err
	}
	return p.makeDir(nil, rec)
}

// MakeDir makes the place a directory of a mode, durably, in one that is there. It
// is an error if anything is there.
func (p Place) MakeDir(mode uint32, rec Recorder) (State, error) { return p.makeDir(&mode, rec) }

// makeDir makes a directory beside the place, so that it is known which one it is,
// and puts it there.
func (p Place) makeDir(mode *uint32, rec Recorder) (State, error) {
	dir, err := p.parent()
	if err != nil {
		return State{}, fmt.Errorf("make directory %s: %w", p.Path(), err)
	}
	defer dir.Close()
	temp := rec.Temp(p.Path())
	after, err := newDir(dir, temp, mode)
	if err == nil {
		err = rec.Staged(p.Path(), State{}, after)
	}
	if err == nil {
		err = renameNewDir(int(dir.Fd()), temp, p.base())
	}
	if err != nil {
		_ = removeTemp(dir, temp) // or recovery does
		return State{}, fmt.Errorf("make directory %s: %w", p.Path(), err)
	}
	if err := dir.Sync(); err != nil {
		return State{}, fmt.Errorf("sync directory above %s: %w", p.Path(), err)
	}
	return after, rec.Applied(p.Path(), after)
}

// renameNewDir renames a directory to a name that nothing has.
func renameNewDir(dir int, from, to string) error {
	err := unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every file system can
		err = unix.Renameat(dir, from, dir, to) // which replaces nothing but an empty directory
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("somebody else made it: %w", ErrChanged)
	}
	return err
}

// newDir makes a directory of a mode; nil is the process's default.
func newDir(dir *os.File, name string, mode *uint32) (State, error) {
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o777); err != nil {
		return State{}, err
	}
	if mode != nil {
		if err := unix.Fchmodat(int(dir.Fd()), name, *mode, 0); err != nil {
			return State{}, fmt.Errorf("set mode: %w", err)
		}
	}
	return lookDir(dir, name)
}

// lookDir is the state of a directory. Anything else does not exist to it.
func lookDir(dir *os.File, name string) (State, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("look at %s: %w", name, err)
	}
	return State{Exists: true, Dir: true, Dev: st.Dev, Inode: st.Ino, Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid}, nil
}

// removeDirs removes the directories that were made, the innermost first, as far as
// they are there and empty.
func removeDirs(fsys *os.Root, dirs []string) {
	for i := len(dirs) - 1; i >= 0; i-- {
		fi, err := fsys.Lstat(path.Clean(dirs[i]))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !fi.IsDir() || fsys.Remove(dirs[i]) != nil {
			return
		}
	}
}
