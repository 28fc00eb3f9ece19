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
	if errors.Is(err, fs.ErrNotExist) {
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
		if err := unix.Unlinkat(int(dir.Fd()), temp, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return Conflict, fmt.Errorf("remove temporary file: %w", err)
		}
	}
	left := u.Applied
	if left == nil {
		left = u.Staged
	}
	now, err := look(dir, p.base(), MaxSize)
	if err != nil && left != nil && left.Dir {
		return removeMade(dir, p.base(), *left)
	}
	if err != nil {
		return Conflict, nil // whatever it is, it is not what we left
	}
	if now.SameContent(u.Before) {
		return Untouched, nil
	}
	switch {
	case left == nil && u.Trusted:
		return Untouched, nil
	case left == nil || !now.Same(*left):
		return Conflict, nil
	case !u.Before.Exists:
		if err := unix.Unlinkat(int(dir.Fd()), p.base(), 0); err != nil {
			return Conflict, err
		}
		return Restored, dir.Sync()
	}
	data, err := backup()
	if err != nil {
		return Conflict, fmt.Errorf("read backup: %w", err)
	}
	return u.putBack(p, dir, now.State, data)
}

// putBack replaces what is there now by the file as it was.
func (u Undo) putBack(p Place, dir *os.File, now State, data []byte) (Outcome, error) {
	was := u.Before
	w := replacement{place: p, dir: dir, temp: u.Temp + "r", before: was, mtime: was.MTime}
	if err := w.create(data); err != nil {
		w.discard()
		return Conflict, err
	}
	defer w.file.Close()
	if err := w.file.Sync(); err != nil {
		w.discard()
		return Conflict, err
	}
	w.before = now // what the rename may replace
	if err := w.put(); errors.Is(err, ErrChanged) {
		w.discard()
		return Conflict, nil
	} else if err != nil {
		w.discard()
		return Conflict, err
	}
	return Restored, dir.Sync()
}

// Look reads what the file is now.
func (u Undo) Look() (File, error) {
	fsys, err := os.OpenRoot(u.Root)
	if err != nil {
		return File{}, fmt.Errorf("look at %s: %w", u.Path(), err)
	}
	defer fsys.Close()
	return Place{root: &root{fs: fsys, real: u.Root, given: u.Root}, rel: u.Rel}.Look(MaxSize)
}
