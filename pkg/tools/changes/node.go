package changes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"correx/pkg/tools/workspace"
)

// A place is an open directory of either side, and the path that it has in the
// workspace.
type place struct {
	dir  *os.File
	path string
}

// A node is what stands under a name.
type node struct {
	path     string
	state    State
	data     []byte // of a file
	links    uint64
	ctime    int64
	special  string // what it is, if no set can hold it: "a FIFO"
	whiteout bool
	opaque   bool
	dir      *os.File // of a directory; to be closed
}

func (n node) close() {
	if n.dir != nil {
		n.dir.Close()
	}
}

// openTop opens the directory of a layer, through no symbolic link.
func openTop(dir string) (*os.File, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("open %q: the path must be absolute", dir)
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// open opens name in dir, never across a mount nor through a link.
func open(dir *os.File, name string, flags uint64) (*os.File, error) {
	fd, err := unix.Openat2(int(dir.Fd()), name, &unix.OpenHow{
		Flags:   flags | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// birth is when a directory was made, in ns since 1970; 0 where nobody knows.
func birth(dir *os.File) int64 {
	var st unix.Statx_t
	err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}

// names are the names in a directory, sorted.
func (r *reader) names(p place) ([]string, error) {
	names, err := p.dir.Readdirnames(r.limits.Entries - r.entries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list %s: %w", p.path, err)
	}
	if r.entries += len(names); r.entries > r.limits.Entries {
		return nil, fmt.Errorf("more than %d paths changed, and so many are not committed at once; have the command change less, or raise the limit", r.limits.Entries)
	}
	slices.Sort(names)
	return names, nil
}

func childPath(p place, name string) (string, error) {
	full := path.Join(p.path, name)
	switch {
	case !utf8.ValidString(name):
		return "", refuse(fmt.Sprintf("%q", full), "has a name that is not UTF-8, and such are not committed; have the command choose another")
	case len(full) > maxPath:
		return "", refuse(full[:100]+"…", "is a path of %d bytes, and %d are committed at most", len(full), maxPath)
	}
	return full, nil
}

// lowerNode is what stands in the workspace. Nothing is a node of no type.
func (r *reader) lowerNode(p place, name string) (node, error) {
	full, err := childPath(p, name)
	if err != nil {
		return node{}, err
	}
	n, _, err := r.node(p.dir, name, full)
	switch {
	case errors.Is(err, unix.ENOENT):
		return node{path: full}, nil
	case errors.Is(err, unix.EXDEV):
		return node{}, refuse(full, "is a mount point, which the command had not mounted; nothing is committed there")
	case errors.Is(err, unix.EACCES):
		return node{}, refuse(full, "cannot be read by this worker, so that its change could not be taken back: %v", err)
	case err == nil && n.special != "":
		return node{}, refuse(full, "is %s in the workspace, and the command replaced or deleted it, which is not committed; have it leave that alone", n.special)
	}
	return n, err
}

// node opens and reads what stands under name.
func (r *reader) node(dir *os.File, name, full string) (node, unix.Stat_t, error) {
	n := node{path: full}
	var st unix.Stat_t
	handle, err := open(dir, name, unix.O_PATH)
	if err != nil {
		return n, st, err
	}
	defer handle.Close()
	if err := unix.Fstat(int(handle.Fd()), &st); err != nil {
		return n, st, fmt.Errorf("look at %s: %w", full, err)
	}
	n.links, n.ctime = uint64(st.Nlink), st.Ctim.Nano()
	n.state.Mode = st.Mode & 0o7777
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		n.state.Type = Directory
		n.dir, err = open(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	case unix.S_IFREG:
		n.state.Type = File
		err = r.content(&n, dir, name)
	case unix.S_IFLNK:
		n.state.Type, n.state.Mode = Symlink, 0
		err = n.target(handle)
	default:
		n.state.Mode, n.special = 0, special(st.Mode)
	}
	return n, st, err
}

// content reads a regular file.
func (r *reader) content(n *node, dir *os.File, name string) error {
	f, err := open(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	switch {
	case err != nil:
		return fmt.Errorf("look at %s: %w", n.path, err)
	case !fi.Mode().IsRegular():
		return &MovedError{Path: n.path, Why: "it is being changed"}
	case fi.Size() > r.limits.FileSize:
		return refuse(n.path, "is %d bytes large, and files of at most %d are committed; have the command leave it alone or write it elsewhere, or raise the limit", fi.Size(), r.limits.FileSize)
	}
	if n.data, err = io.ReadAll(io.LimitReader(f, r.limits.FileSize+1)); err != nil {
		return fmt.Errorf("read %s: %w", n.path, err)
	}
	if int64(len(n.data)) != fi.Size() {
		return &MovedError{Path: n.path, Why: "it is being changed"}
	}
	if r.bytes += fi.Size(); r.bytes > r.limits.Total {
		return refuse(n.path, "is too much: what changed has more than %d bytes, before and after together; have the command change less, or raise the limit", r.limits.Total)
	}
	n.state.Size, n.state.SHA256, n.state.MTime = fi.Size(), workspace.Hash(n.data), fi.ModTime().UnixNano()
	return nil
}

// target reads a symbolic link.
func (n *node) target(handle *os.File) error {
	buf := make([]byte, maxPath+1)
	size, err := unix.Readlinkat(int(handle.Fd()), "", buf)
	if err != nil {
		return fmt.Errorf("read link %s: %w", n.path, err)
	}
	if n.state.Target = string(buf[:size]); !utf8.ValidString(n.state.Target) {
		return refuse(n.path, "is a symbolic link to %q, which is not UTF-8, and such are not committed", n.state.Target)
	}
	return nil
}
