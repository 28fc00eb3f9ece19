package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// An Undo is what is known of one change to one file.
type Undo struct {
	Root    string   `json:"root"` // the allowed directory
	Rel     string   `json:"rel"`  // the file below it
	Before  State    `json:"before"`
	Staged  *State   `json:"-"`              // what it was about to become; nil: it was not announced
	Applied *State   `json:"-"`              // what it became; nil: not known
	Temp    string   `json:"temp"`           // name of the temporary file beside it
	Dirs    []string `json:"dirs,omitempty"` // made for it, the outermost first
	Trusted bool     `json:"trusted"`        // every change of it was announced
}

// An Outcome is what a restore came to.
type Outcome int

const (
	Untouched Outcome = iota // it is as it was before, or was changed by others alone
	Restored                 // it is as it was before again
	Conflict                 // it is neither what the change left nor what was before: left alone
)

// Path is the absolute path of the file.
func (u Undo) Path() string { return Place{root: &root{real: u.Root}, rel: u.Rel}.Path() }

// Restore makes the file what it was before, with the bytes that backup returns,
// but only where it still is what the change left. It may be called again
// after a crash in the middle of it. An error leaves the question open.
func (u Undo) Restore(backup func() ([]byte, error)) (Outcome, error) {
	fsys, err := os.OpenRoot(u.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return Conflict, nil
	}
	if err != nil {
		return Conflict, fmt.Errorf("restore %s: %w", u.Path(), err)
	}
	defer fsys.Close()
	p := Place{root: &root{fs: fsys, real: u.Root, given: u.Root}, rel: u.Rel}
	dir, err := p.parent()
	if err != nil && noDir(err) {
		if u.Before.Exists {
			return Conflict, nil // its directory is gone
		}
		removeDirs(fsys, u.Dirs) // it came no further than to some of them
		return Untouched, nil
	}
	if err != nil {
		return Conflict, fmt.Errorf("restore %s: %w", u.Path(), err)
	}
	defer dir.Close()
	outcome, err := u.restoreIn(p, dir, backup)
	if err != nil {
		return Conflict, fmt.Errorf("restore %s: %w", u.Path(), err)
	}
	if !u.Before.Exists && outcome != Conflict {
		removeDirs(fsys, u.Dirs)
	}
	return outcome, nil
}

func (u Undo) restoreIn(p Place, dir *os.File, backup func() ([]byte, error)) (Outcome, error) {
	for _, temp := range []string{u.Temp, u.Temp + "r"} {
		if err := removeTemp(dir, temp); err != nil {
			return Conflict, fmt.Errorf("remove temporary file: %w", err)
		}
	}
	left := u.Applied
	if left == nil {
		left = u.Staged
	}
	now, err := lookAny(dir, p.base(), MaxAny)
	if err != nil {
		return Conflict, nil // whatever it is, it is not what we left
	}
	modeOnly := left != nil && left.Exists && left.SameContent(u.Before) && !left.SameMode(u.Before)
	switch {
	case now.SameContent(u.Before) && (!modeOnly || now.SameMode(u.Before)):
		return Untouched, nil
	case left == nil && u.Trusted:
		return Untouched, nil
	case left == nil || !now.Same(*left) || modeOnly && !now.SameMode(*left):
		return Conflict, nil
	}
	err = u.undo(p, dir, now.State, modeOnly, backup)
	if errors.Is(err, ErrChanged) {
		return Conflict, nil
	}
	if err != nil {
		return Conflict, err
	}
	return Restored, dir.Sync()
}

func removeTemp(dir *os.File, name string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// undo makes of now what was before.
func (u Undo) undo(p Place, dir *os.File, now State, modeOnly bool, backup func() ([]byte, error)) error {
	switch was := u.Before; {
	case modeOnly:
		_, err := chmod(dir, p.base(), now, was.Mode)
		return err
	case !was.Exists:
		return unlink(dir, p.base(), now)
	case was.Dir:
		return u.putBackDir(p, dir, now)
	case was.Link != "":
		return u.putBackLink(p, dir, now)
	}
	data, err := backup()
	if err != nil {
		return fmt.Errorf("read backup: %w", err)
	}
	return u.putBack(p, dir, now, data)
}

// putBackDir makes a directory again that is gone, empty.
func (u Undo) putBackDir(p Place, dir *os.File, now State) error {
	if now.Exists {
		return ErrChanged
	}
	temp, was := u.Temp+"r", u.Before
	if _, err := newDir(dir, temp, nil); err != nil {
		return err
	}
	err := giveTo(dir, temp, was)
	if err == nil {
		err = unix.Fchmodat(int(dir.Fd()), temp, was.Mode, 0)
	}
	if err == nil {
		err = renameNewDir(int(dir.Fd()), temp, p.base())
	}
	if err != nil {
		_ = removeTemp(dir, temp)
	}
	return err
}

func (u Undo) putBackLink(p Place, dir *os.File, now State) error {
	temp, was := u.Temp+"r", u.Before
	if _, err := newLink(dir, temp, was.Link); err != nil {
		return err
	}
	err := giveTo(dir, temp, was)
	if err == nil {
		err = exchange(dir, temp, p.base(), now)
	}
	if err != nil {
		_ = removeTemp(dir, temp)
	}
	return err
}

// giveTo gives what was made to whom it belonged.
func giveTo(dir *os.File, name string, was State) error {
	if int(was.UID) == os.Geteuid() && int(was.GID) == os.Getegid() {
		return nil
	}
	if err := unix.Fchownat(int(dir.Fd()), name, int(was.UID), int(was.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("give it back to its owner %d:%d: %w", was.UID, was.GID, err)
	}
	return nil
}

// putBack replaces what is there now by the file as it was.
func (u Undo) putBack(p Place, dir *os.File, now State, data []byte) error {
	was := u.Before
	w := replacement{place: p, dir: dir, temp: u.Temp + "r", before: was, mtime: was.MTime}
	if err := w.create(data); err != nil {
		w.discard()
		return err
	}
	defer w.file.Close()
	if err := w.file.Sync(); err != nil {
		w.discard()
		return err
	}
	w.before = now // what the rename may replace
	if err := w.put(); err != nil {
		w.discard()
		return err
	}
	return nil
}

// Look reads what the file is now.
func (u Undo) Look() (File, error) {
	fsys, err := os.OpenRoot(u.Root)
	if err != nil {
		return File{}, fmt.Errorf("look at %s: %w", u.Path(), err)
	}
	defer fsys.Close()
	return Place{root: &root{fs: fsys, real: u.Root, given: u.Root}, rel: u.Rel}.LookAny(MaxAny)
}

// IsBack reports whether what is there now is what was before, which inode apart.
func (u Undo) IsBack() bool {
	now, err := u.Look()
	return err == nil && now.SameContent(u.Before) && (!u.Before.Exists || now.SameMode(u.Before))
}
