package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// MaxSize is how large a file may be that the file tools read or change. Larger
// ones could not be shown or told in reasonable time.
const MaxSize = 8 << 20

// MaxAny is how large a file may be that is backed up and taken back at all.
const MaxAny = 64 << 20

// A State is a file at one moment: whether it existed, which inode it was, and
// what was in it. Equal bytes in another inode, or the same inode changed since,
// are another's work. Of a directory it has the inode, mode and owner alone: what
// is in it is not its own.
type State struct {
	Exists bool   `json:"exists"`
	Dir    bool   `json:"dir,omitempty"`
	Link   string `json:"link,omitempty"` // where a symbolic link leads
	Dev    uint64 `json:"dev,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
	Mode   uint32 `json:"mode,omitempty"` // permission bits
	UID    uint32 `json:"uid,omitempty"`
	GID    uint32 `json:"gid,omitempty"`
	Size   int64  `json:"size,omitempty"`
	MTime  int64  `json:"mtime,omitempty"` // ns since 1970
	CTime  int64  `json:"ctime,omitempty"` // ns since 1970; 0: not known yet
	Links  uint64 `json:"links,omitempty"`
	SHA256 string `json:"sha256,omitempty"` // hex
}

// Same reports whether two states are the same file with the same content and
// no change between. A change time of 0 is not compared, nor is the inode of a
// directory if it is 0. The mode never is: see [State.SameMode].
func (s State) Same(o State) bool {
	if !s.Exists || !o.Exists {
		return s.Exists == o.Exists
	}
	if s.Dir != o.Dir || s.Link != o.Link {
		return false
	}
	if s.Dir {
		return s.Inode == 0 || o.Inode == 0 || s.Dev == o.Dev && s.Inode == o.Inode
	}
	if s.CTime != 0 && o.CTime != 0 && s.CTime != o.CTime {
		return false
	}
	return s.Dev == o.Dev && s.Inode == o.Inode && s.Size == o.Size && s.MTime == o.MTime && s.SHA256 == o.SHA256
}

// SameContent reports whether both exist with equal bytes, or neither does.
func (s State) SameContent(o State) bool {
	return s.Exists == o.Exists && s.Dir == o.Dir && s.Link == o.Link && s.SHA256 == o.SHA256
}

// SameMode reports whether both have the same permission bits.
func (s State) SameMode(o State) bool { return s.Mode == o.Mode }

// regular reports whether it is a regular file.
func (s State) regular() bool { return s.Exists && !s.Dir && s.Link == "" }

// A File is a state and its bytes.
type File struct {
	State
	Data []byte
}

// ErrTooLarge says that a file has more than the bytes allowed.
var ErrTooLarge = errors.New("file is too large")

// Look reads what is at the place, at most limit bytes. Nothing there is a File
// that does not exist, and no error.
func (p Place) Look(limit int64) (File, error) {
	dir, err := p.parent()
	if errors.Is(err, fs.ErrNotExist) {
		return File{}, nil
	}
	if err != nil {
		return File{}, err
	}
	defer dir.Close()
	f, err := look(dir, p.base(), limit)
	if err != nil {
		return File{}, fmt.Errorf("%s %w", p.Path(), err)
	}
	return f, nil
}

// look reads name in dir. Its errors go on from the name: "is a FIFO".
func look(dir *os.File, name string, limit int64) (File, error) {
	var st unix.Stat_t
	err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return File{}, nil
	}
	if err != nil {
		return File{}, fmt.Errorf("cannot be looked at: %w", err)
	}
	if err := regular(st.Mode); err != nil {
		return File{}, err // not even opened: opening a device can do things
	}
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return File{}, nil
	}
	if err != nil {
		return File{}, fmt.Errorf("cannot be opened: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	return readOpen(f, limit)
}

func readOpen(f *os.File, limit int64) (File, error) {
	before, err := stat(f)
	if err != nil {
		return File{}, err
	}
	if before.Size > limit {
		return File{}, fmt.Errorf("is %d bytes large, and %d are allowed: %w", before.Size, limit, ErrTooLarge)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return File{}, fmt.Errorf("cannot be read: %w", err)
	}
	after, err := stat(f)
	if err != nil {
		return File{}, err
	}
	if !before.Same(after) || int64(len(data)) != after.Size {
		return File{}, errors.New("changed while it was read; try again")
	}
	after.SHA256 = Hash(data)
	return File{State: after, Data: data}, nil
}

// stat is the state of an open regular file, without its hash.
func stat(f *os.File) (State, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return State{}, fmt.Errorf("cannot be looked at: %w", err)
	}
	if err := regular(st.Mode); err != nil {
		return State{}, err
	}
	return State{
		Exists: true, Dev: st.Dev, Inode: st.Ino, Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid,
		Size: st.Size, MTime: st.Mtim.Nano(), CTime: st.Ctim.Nano(), Links: uint64(st.Nlink),
	}, nil
}

func regular(mode uint32) error {
	kind := map[uint32]string{
		unix.S_IFDIR: "a directory", unix.S_IFIFO: "a FIFO", unix.S_IFSOCK: "a socket",
		unix.S_IFCHR: "a device", unix.S_IFBLK: "a device", unix.S_IFLNK: "a symbolic link",
	}[mode&unix.S_IFMT]
	if kind != "" {
		return fmt.Errorf("is %s and no regular file", kind)
	}
	return nil
}

// Hash is the hex SHA-256 of data.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
