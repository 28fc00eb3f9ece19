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
	// What it will be is not known before it is there: its name is all.
	if err := rec.Staged(p.Path(), State{}, State{Exists: true, Dir: true}); err != nil {
		return State{}, fmt.Errorf("make directory %s: %w", p.Path(), err)
	}
	if err := p.makeParents(); err != nil {
		return State{}, err
	}
	dir, err := p.parent()
	if err != nil {
		return State{}, fmt.Errorf("make directory %s: %w", p.Path(), err)
	}
	defer dir.Close()
	if err := unix.Mkdirat(int(dir.Fd()), p.base(), 0o777); errors.Is(err, unix.EEXIST) {
		return State{}, fmt.Errorf("make directory %s: somebody else made it: %w", p.Path(), ErrChanged)
	} else if err != nil {
		return State{}, fmt.Errorf("make directory %s: %w", p.Path(), err)
	}
	if err := dir.Sync(); err != nil {
		return State{}, fmt.Errorf("sync directory above %s: %w", p.Path(), err)
	}
	after, err := lookDir(dir, p.base())
	if err != nil {
		return State{}, fmt.Errorf("make directory %s: %w", p.Path(), err)
	}
	return after, rec.Applied(p.Path(), after)
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

// removeMade takes a directory away again that a change made, if nothing is in it.
// One whose inode is not known is told by its name alone.
func removeMade(dir *os.File, name string, made State) (Outcome, error) {
	now, err := lookDir(dir, name)
	if err != nil {
		return Conflict, err
	}
	if !now.Exists || made.Inode != 0 && !now.Same(made) {
		return Conflict, nil
	}
	err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.EBUSY) {
		return Conflict, nil // somebody put something into it
	}
	if err != nil {
		return Conflict, err
	}
	return Restored, dir.Sync()
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
