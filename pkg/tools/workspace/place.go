package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLinks is how many symbolic links one path may follow, as in the kernel.
const maxLinks = 40

// A Place is a path below an allowed directory, free of symbolic links when it
// was found.
type Place struct {
	root *root
	rel  string // "." for the directory itself
}

// Path is the absolute path.
func (p Place) Path() string { return filepath.Join(p.root.real, p.rel) }

// Root is the allowed directory.
func (p Place) Root() string { return p.root.real }

// Rel is the path below it.
func (p Place) Rel() string { return p.rel }

// place resolves the links of rel one by one. asked is for messages.
func (o *root) place(rel, asked string) (Place, error) {
	todo, done, links := split(rel), []string(nil), 0
	for len(todo) > 0 {
		c := todo[0]
		todo = todo[1:]
		if c == ".." {
			if len(done) == 0 {
				return Place{}, &DeniedError{Path: asked, Reason: "it leads out of " + o.real}
			}
			done = done[:len(done)-1]
			continue
		}
		name := path.Join(append(slices.Clone(done), c)...)
		fi, err := o.fs.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			done = append(done, c)
			continue
		case errors.Is(err, syscall.ENOTDIR):
			return Place{}, fmt.Errorf("path %q goes through %s, which is a file and no directory", asked, path.Join(done...))
		case err != nil:
			return Place{}, fmt.Errorf("look at path %q: %w", asked, err)
		case fi.Mode()&fs.ModeSymlink == 0:
			done = append(done, c)
			continue
		}
		if links++; links > maxLinks {
			return Place{}, &DeniedError{Path: asked, Reason: "it follows too many symbolic links"}
		}
		target, err := o.fs.Readlink(name)
		if err != nil {
			return Place{}, fmt.Errorf("read link %s: %w", name, err)
		}
		if filepath.IsAbs(target) {
			inside, ok := below(o.real, target)
			if !ok {
				return Place{}, &DeniedError{Path: asked, Reason: fmt.Sprintf("%s is a symbolic link that leads out of %s", name, o.real)}
			}
			target, done = inside, nil
		}
		todo = append(split(target), todo...)
	}
	if len(done) == 0 {
		return Place{root: o, rel: "."}, nil
	}
	return Place{root: o, rel: path.Join(done...)}, nil
}

// parent opens the directory that the place is in.
func (p Place) parent() (*os.File, error) {
	if p.rel == "." {
		return nil, fmt.Errorf("%s is an allowed directory itself, not a file in it", p.Path())
	}
	return p.root.openDir(path.Dir(p.rel))
}

// openDir opens a directory, through no symbolic link, and does not wait for a
// FIFO in its place.
func (o *root) openDir(rel string) (*os.File, error) {
	top, err := o.fs.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil || rel == "." {
		return top, err
	}
	defer top.Close()
	fd, err := unix.Openat2(int(top.Fd()), rel, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: filepath.Join(o.real, rel), Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(o.real, rel)), nil
}

// noDir reports whether an error of openDir says that there is no such directory:
// nothing, a file, or a symbolic link stands in its place or above.
func noDir(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

func (p Place) base() string { return path.Base(p.rel) }

// Stat says what is at the place. It is [fs.ErrNotExist] when nothing is.
func (p Place) Stat() (fs.FileInfo, error) { return p.root.fs.Lstat(p.rel) }

// MissingDirs returns the directories above the place that do not exist, the
// outermost first, relative to the root.
func (p Place) MissingDirs() []string {
	var missing []string
	for d := path.Dir(p.rel); d != "." && d != "/"; d = path.Dir(d) {
		if _, err := p.root.fs.Lstat(d); err == nil {
			break
		}
		missing = append(missing, d)
	}
	slices.Reverse(missing)
	return missing
}

// Up is the directory that the place is in. An allowed directory has none.
func (p Place) Up() (Place, error) {
	if p.rel == "." {
		return Place{}, fmt.Errorf("%s is an allowed directory itself", p.Path())
	}
	return Place{root: p.root, rel: path.Dir(p.rel)}, nil
}
