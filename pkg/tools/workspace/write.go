package workspace

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// ErrChanged says that a file is not any more what it was when it was read.
var ErrChanged = errors.New("changed in the meantime")

// Write makes data the content of the place, in one step and durably. before is
// what the caller read; nothing is written over anything else. Mode, owner,
// access lists and user attributes stay; setuid and setgid do not. A new file gets the
// process's default mode, and the directories above it are made.
func (p Place) Write(before State, data []byte, rec Recorder) (State, error) {
	if rec == nil {
		rec = noRecorder{}
	}
	if before.Links > 1 {
		return State{}, p.hardLinked(before)
	}
	if err := p.makeParents(); err != nil {
		return State{}, err
	}
	w := replacement{place: p, temp: rec.Temp(p.Path()), before: before}
	return w.replace(data, rec)
}

// Put is [Place.Write] of a file whose mode and time are given. The directory that
// it is in must be there; a symbolic link may have been before.
func (p Place) Put(before State, data []byte, mode uint32, mtime int64, rec Recorder) (State, error) {
	if before.Links > 1 {
		return State{}, p.hardLinked(before)
	}
	w := replacement{place: p, temp: rec.Temp(p.Path()), before: before, mode: &mode, mtime: mtime}
	return w.replace(data, rec)
}

// Delete unlinks the file, durably, if it still is what before says.
func (p Place) Delete(before State, rec Recorder) error { return p.Remove(before, rec) }

func (p Place) hardLinked(s State) error {
	return fmt.Errorf("%s has %d hard links; changing it would change the other names too, so it is not touched", p.Path(), s.Links)
}

// makeParents makes the missing directories above the place, each durably.
func (p Place) makeParents() error {
	for _, d := range p.MissingDirs() {
		if err := p.root.fs.Mkdir(d, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make directory %s: %w", d, err)
		}
		above, err := Place{root: p.root, rel: d}.parent()
		if err != nil {
			return fmt.Errorf("make directory %s: %w", d, err)
		}
		err = above.Sync()
		above.Close()
		if err != nil {
			return fmt.Errorf("sync directory above %s: %w", d, err)
		}
	}
	return nil
}

// A replacement is one file on its way into place.
type replacement struct {
	place  Place
	dir    *os.File
	temp   string
	before State
	after  State
	file   *os.File
	mode   *uint32 // nil: as before, or the process's default
	mtime  int64   // 0: now
}

// replace takes the file all the way.
func (w *replacement) replace(data []byte, rec Recorder) (State, error) {
	path := w.place.Path()
	dir, err := w.place.parent()
	if err != nil {
		return State{}, fmt.Errorf("open directory of %s: %w", path, err)
	}
	defer dir.Close()
	w.dir = dir
	if err := w.create(data); err != nil {
		w.discard()
		return State{}, fmt.Errorf("write %s: %w", path, err)
	}
	defer w.file.Close()
	if err := w.stage(rec); err != nil {
		w.discard()
		return State{}, fmt.Errorf("write %s: %w", path, err)
	}
	if err := w.put(); err != nil {
		w.discard()
		return State{}, fmt.Errorf("write %s: %w", path, err)
	}
	return w.finish(rec)
}

// create writes the temporary file with everything but its name.
func (w *replacement) create(data []byte) error {
	mode := uint32(0o600)
	if !w.before.Exists {
		mode = 0o666 // less the umask
	}
	fd, err := unix.Openat(int(w.dir.Fd()), w.temp, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return fmt.Errorf("make temporary file: %w", err)
	}
	w.file = os.NewFile(uintptr(fd), w.temp)
	if _, err := w.file.Write(data); err != nil {
		return err
	}
	if w.before.regular() {
		if err := w.keepAttributes(); err != nil {
			return err
		}
	}
	if w.mode != nil {
		if err := unix.Fchmod(fd, *w.mode&0o1777); err != nil {
			return fmt.Errorf("set mode: %w", err)
		}
	}
	if w.mtime != 0 {
		t := unix.NsecToTimespec(w.mtime)
		if err := unix.UtimesNanoAt(int(w.dir.Fd()), w.temp, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return fmt.Errorf("set time: %w", err)
		}
	}
	if w.after, err = stat(w.file); err != nil {
		return fmt.Errorf("temporary file %w", err)
	}
	w.after.SHA256 = Hash(data)
	return nil
}

func (w *replacement) keepAttributes() error {
	now, err := stat(w.file)
	if err != nil {
		return fmt.Errorf("temporary file %w", err)
	}
	if now.UID != w.before.UID || now.GID != w.before.GID {
		if err := w.file.Chown(int(w.before.UID), int(w.before.GID)); err != nil {
			return fmt.Errorf("keep owner %d:%d: %w", w.before.UID, w.before.GID, err)
		}
	}
	if err := copyAttributes(w.dir, w.place.base(), w.file); err != nil {
		return err
	}
	if err := unix.Fchmod(int(w.file.Fd()), w.before.Mode&0o1777); err != nil {
		return fmt.Errorf("keep mode: %w", err)
	}
	return nil
}

// stage makes the temporary file and the record of it durable, at once.
func (w *replacement) stage(rec Recorder) error {
	after := w.after
	after.CTime = 0 // the rename changes it
	var g errgroup.Group
	g.Go(w.file.Sync)
	g.Go(func() error { return rec.Staged(w.place.Path(), w.before, after) })
	return g.Wait()
}

// put renames, if the file still is what it was.
func (w *replacement) put() error {
	if err := unchanged(w.dir, w.place.base(), w.before); err != nil {
		return err
	}
	fd := int(w.dir.Fd())
	if w.before.Exists {
		return unix.Renameat(fd, w.temp, fd, w.place.base())
	}
	return renameNew(fd, w.temp, w.place.base())
}

// renameNew renames to a name that nothing has.
func renameNew(dir int, from, to string) error {
	err := unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every file system can
		if err = unix.Linkat(dir, from, dir, to, 0); err == nil {
			err = unix.Unlinkat(dir, from, 0)
		}
	}
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("somebody else made it: %w", ErrChanged)
	}
	return err
}

// finish makes the rename durable and reports what the file is now.
func (w *replacement) finish(rec Recorder) (State, error) {
	if err := w.dir.Sync(); err != nil {
		return State{}, fmt.Errorf("sync directory of %s: %w", w.place.Path(), err)
	}
	now, err := stat(w.file)
	if err != nil {
		return State{}, fmt.Errorf("%s %w", w.place.Path(), err)
	}
	w.after.CTime, w.after.Links = now.CTime, now.Links
	return w.after, rec.Applied(w.place.Path(), w.after)
}

func (w *replacement) discard() {
	if w.file == nil {
		return
	}
	w.file.Close()
	_ = unix.Unlinkat(int(w.dir.Fd()), w.temp, 0) // gone already, or recovery finds it
}

// unchanged looks whether name still is what before says.
func unchanged(dir *os.File, name string, before State) error {
	now, err := lookAny(dir, name, MaxAny)
	if err != nil {
		return fmt.Errorf("it %w", err)
	}
	if !now.Same(before) {
		return fmt.Errorf("it %w: it was %s and is %s now; read it again", ErrChanged, brief(before), brief(now.State))
	}
	return nil
}

func brief(s State) string {
	switch {
	case !s.Exists:
		return "absent"
	case s.Dir:
		return "a directory"
	case s.Link != "":
		return fmt.Sprintf("a symbolic link to %q", s.Link)
	}
	return fmt.Sprintf("%d bytes, SHA-256 %.12s…", s.Size, s.SHA256)
}
