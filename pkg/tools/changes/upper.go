package changes

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// upperNode is what the command left under name.
func (r *reader) upperNode(p place, name string) (node, error) {
	full, err := childPath(p, name)
	if err != nil {
		return node{}, err
	}
	n, st, err := r.node(p.dir, name, full)
	if errors.Is(err, unix.EACCES) { // the command took the permission away, from this worker too
		if err = unix.Fchmodat(int(p.dir.Fd()), name, st.Mode&0o7777|0o700, 0); err == nil {
			mode := n.state.Mode
			n, _, err = r.node(p.dir, name, full)
			n.state.Mode = mode
		}
	}
	if err != nil {
		n.close()
		var refused *RefusedError
		if errors.As(err, &refused) {
			return node{}, err
		}
		return node{}, fmt.Errorf("read %s: %w", full, err)
	}
	if err := n.overlay(p.dir, name, st); err != nil {
		n.close()
		return node{}, err
	}
	return n, nil
}

// overlay reads the marks that overlayfs leaves, and refuses what no set can hold.
func (n *node) overlay(dir *os.File, name string, st unix.Stat_t) error {
	switch n.state.Type {
	case Directory:
		if err := n.search(); err != nil {
			return err
		}
		if mark(n.dir, "redirect") != "" {
			return refuse(n.path, "was renamed in a way that this cannot read (redirect_dir); nothing is committed")
		}
		n.opaque = mark(n.dir, "opaque") == "y"
		return nil
	case Symlink:
		return nil
	case File:
		return n.overlayFile(dir, name)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 {
		n.whiteout = true
		return nil
	}
	return refuse(n.path, "is %s, which is not committed; have the command make it elsewhere, or remove it before it ends", n.special)
}

// search gives this worker back the permission to look into a directory.
func (n *node) search() error {
	if n.state.Mode&0o500 == 0o500 {
		return nil
	}
	if err := unix.Fchmod(int(n.dir.Fd()), n.state.Mode|0o700); err != nil {
		return fmt.Errorf("read %s: %w", n.path, err)
	}
	return nil
}

func (n *node) overlayFile(dir *os.File, name string) error {
	f, err := open(dir, name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return fmt.Errorf("read %s: %w", n.path, err)
	}
	defer f.Close()
	switch {
	case has(f, "metacopy"):
		return refuse(n.path, "was copied in a way that this cannot read (metacopy); nothing is committed")
	case n.state.Size == 0 && has(f, "whiteout"):
		n.whiteout = true
	case n.state.Mode&0o6000 != 0:
		return refuse(n.path, "is setuid or setgid (mode %04o), which is not committed; have the command take that away (chmod u-s,g-s)", n.state.Mode)
	}
	return nil
}

// marks are the names under which overlayfs keeps its attributes: mounted by
// root, or in a user namespace.
var marks = []string{"trusted.overlay.", "user.overlay."}

// mark is the value of an attribute of overlayfs, or empty.
func mark(f *os.File, name string) string {
	value := make([]byte, 1024)
	for _, prefix := range marks {
		if n, err := unix.Fgetxattr(int(f.Fd()), prefix+name, value); err == nil {
			return string(value[:n])
		}
	}
	return ""
}

func has(f *os.File, name string) bool {
	for _, prefix := range marks {
		if _, err := unix.Fgetxattr(int(f.Fd()), prefix+name, nil); err == nil {
			return true
		}
	}
	return false
}

func special(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "a device"
}
