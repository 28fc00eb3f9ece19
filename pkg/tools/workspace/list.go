package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// An Entry is what stands in a directory under one name.
type Entry struct {
	Name   string
	Kind   string // "file", "directory", "symbolic link", "FIFO", "socket", "device"
	Size   int64  // of a file
	Target string // of a symbolic link
}

// List returns what is in a directory, by name, without the first skip entries
// and at most limit; all says how many there are.
func (p Place) List(skip, limit int) (entries []Entry, all int, err error) {
	fi, err := p.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !fi.IsDir() {
		return nil, 0, fmt.Errorf("%s is %s and no directory", p.Path(), KindOf(fi))
	}
	d, err := p.root.openDir(p.rel)
	if err != nil {
		return nil, 0, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, 0, fmt.Errorf("list %s: %w", p.Path(), err)
	}
	slices.SortFunc(names, strings.Compare)
	for _, name := range names[min(skip, len(names)):min(skip+limit, len(names))] {
		entries = append(entries, entry(d, name))
	}
	return entries, len(names), nil
}

// entry looks at name in dir. Of one that is gone meanwhile only the name is told.
func entry(dir *os.File, name string) Entry {
	e := Entry{Name: name}
	var st unix.Stat_t
	if unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return e
	}
	e.Kind, e.Size = kindOf(st.Mode), st.Size
	if e.Kind == "symbolic link" {
		target := make([]byte, 4096)
		if n, err := unix.Readlinkat(int(dir.Fd()), name, target); err == nil {
			e.Target = string(target[:n])
		}
	}
	return e
}

func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "file"
	case unix.S_IFDIR:
		return "directory"
	case unix.S_IFLNK:
		return "symbolic link"
	case unix.S_IFIFO:
		return "FIFO"
	case unix.S_IFSOCK:
		return "socket"
	}
	return "device"
}

// KindOf is what a file is, in a word or two, as in [Entry].
func KindOf(fi fs.FileInfo) string {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return "unknown"
	}
	return kindOf(st.Mode)
}
