package stage

import (
	"syscall"

	"correx/pkg/sandbox/stage/kernel"
)

// Attributes of mounts.
const (
	nothingRuns = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
	readOnly    = nothingRuns | kernel.MOUNT_ATTR_RDONLY
)

// open makes the source of a mount that comes from outside.
//
//go:norace
//go:nosplit
func (n *inner) open(i int) {
	m := &n.mounts[i]
	attr := uint64(nothingRuns)
	switch m.Kind {
	case Bind:
	case Readable:
		attr = readOnly
	case Device:
		attr = kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NOEXEC
	default:
		return
	}
	fd, errno := n.lookUp(here, m.from, 0)
	if errno != 0 {
		n.fail(OpenSource, i, errno)
	}
	if m.source, errno = clone(fd); errno == 0 {
		errno = n.setattr(m.source, attr)
	}
	if errno != 0 {
		n.fail(CloneSource, i, errno)
	}
	closeFD(fd)
}

// openOverlay mounts an overlayfs, by descriptors where the kernel takes them.
//
//go:norace
//go:nosplit
func (n *inner) openOverlay(i int) {
	m := &n.mounts[i]
	fs, errno := fsopen("overlay\x00")
	if errno != 0 {
		n.fail(MountOverlay, i, errno)
	}
	n.layer(i, fs, "lowerdir+\x00", m.from)
	n.layer(i, fs, "upperdir\x00", m.upper)
	n.layer(i, fs, "workdir\x00", m.work)
	if errno := fsconfig(fs, setFlag, z("userxattr\x00"), 0, 0); errno != 0 {
		n.fail(MountOverlay, i, errno)
	}
	if m.source, errno = fsmount(fs, nothingRuns); errno != 0 {
		n.fail(MountOverlay, i, errno)
	}
	closeFD(fs)
}

//go:norace
//go:nosplit
func (n *inner) layer(i int, fs uintptr, key, path string) {
	fd, errno := n.lookUp(here, path, 0)
	if errno != 0 {
		n.fail(OpenSource, i, errno)
	}
	if errno := fsconfig(fs, setFD, z(key), 0, fd); errno != 0 {
		n.fail(MountOverlay, i, errno)
	}
	closeFD(fd)
}

// makeMemory makes a file system in memory, of a size if one is given.
//
//go:norace
//go:nosplit
func (n *inner) makeMemory(size *string) uintptr {
	fs, errno := fsopen("tmpfs\x00")
	if errno == 0 {
		errno = fsconfig(fs, setString, z("mode\x00"), z("755\x00"), 0)
	}
	if errno == 0 && size != nil {
		errno = fsconfig(fs, setString, z("size\x00"), z(*size), 0)
	}
	if errno == 0 && size != nil {
		errno = fsconfig(fs, setString, z("nr_inodes\x00"), z("65536\x00"), 0)
	}
	var fd uintptr
	if errno == 0 {
		fd, errno = fsmount(fs, nothingRuns)
	}
	if errno != 0 {
		n.fail(MountMemory, -1, errno)
	}
	closeFD(fs)
	return fd
}

//go:norace
//go:nosplit
func (n *inner) base(b Base) uintptr {
	if b == Scratch {
		return n.memory
	}
	return n.void
}

//go:norace
//go:nosplit
func (n *inner) make(x *node) syscall.Errno {
	at := n.base(x.base)
	var errno syscall.Errno
	switch x.kind {
	case "dir":
		_, errno = sys(kernel.SYS_MKDIRAT, at, z(x.path), 0o755, 0, 0, 0)
	case "open":
		_, errno = sys(kernel.SYS_MKDIRAT, at, z(x.path), 0o1777, 0, 0, 0)
	case "file":
		_, errno = sys(kernel.SYS_MKNODAT, at, z(x.path), kernel.S_IFREG|0o444, 0, 0, 0)
	case "link":
		_, errno = sys(kernel.SYS_SYMLINKAT, z(x.to), at, z(x.path), 0, 0, 0)
	}
	return errno
}

// makeProc mounts a /proc of this namespace, with the processes and nothing of
// the machine, and of the processes those that may be looked at.
//
//go:norace
//go:nosplit
func (n *inner) makeProc() uintptr {
	fs, errno := fsopen("proc\x00")
	if errno == 0 {
		errno = fsconfig(fs, setString, z("subset\x00"), z("pid\x00"), 0)
	}
	if errno == 0 {
		errno = fsconfig(fs, setString, z("hidepid\x00"), z("ptraceable\x00"), 0)
	}
	var fd uintptr
	if errno == 0 {
		fd, errno = fsmount(fs, readOnly|kernel.MOUNT_ATTR_NOEXEC)
	}
	if errno != 0 {
		n.fail(MountProc, -1, errno)
	}
	closeFD(fs)
	return fd
}

// makeRoot makes the new root: a copy of all mounts, read-only. It is attached
// somewhere so that more can be attached to it.
//
//go:norace
//go:nosplit
func (n *inner) makeRoot() {
	root, errno := n.lookUp(here, "/\x00", 0)
	if errno == 0 {
		n.tree, errno = clone(root)
	}
	if errno == 0 {
		errno = n.setattr(n.tree, readOnly)
	}
	if errno != 0 {
		n.fail(CloneRoot, -1, errno)
	}
	closeFD(root)
	at, errno := n.lookUp(here, "/proc\x00", 0)
	if errno == 0 {
		errno = attach(n.tree, at)
	}
	if errno != 0 {
		n.fail(Attach, -1, errno)
	}
	closeFD(at)
}

// attachAt puts a mount at a place of the new root.
//
//go:norace
//go:nosplit
func (n *inner) attachAt(mount uintptr, path string, i int) {
	at, errno := n.lookUp(n.tree, path, kernel.RESOLVE_IN_ROOT)
	if errno != 0 {
		n.fail(FindTarget, i, errno)
	}
	if errno := attach(mount, at); errno != 0 {
		n.fail(Attach, i, errno)
	}
	closeFD(at)
}

// place attaches a mount, and lets Landlock allow what it allows.
//
//go:norace
//go:nosplit
func (n *inner) place(i int) {
	m := &n.mounts[i]
	rights := uint64(0)
	switch m.Kind {
	case Again, Pin, Cover:
		m.source = n.inside(i)
	}
	switch m.Kind {
	case Bind, Overlay:
		rights = WriteRights
	case Device:
		rights = deviceRights
	case Cover:
		if m.Base == Scratch {
			rights = WriteRights
		}
	}
	n.attachAt(m.source, m.to, i)
	if rights != 0 {
		if errno := n.allow(m.source, rights); errno != 0 {
			n.fail(AddRule, i, syscall.Errno(errno))
		}
	}
	closeFD(m.source)
}

// inside makes the source of a mount that comes from the new root or a base.
//
//go:norace
//go:nosplit
func (n *inner) inside(i int) uintptr {
	m := &n.mounts[i]
	dir, path := n.tree, m.to
	if m.Kind == Cover {
		dir, path = n.base(m.Base), m.node
	}
	at, errno := n.lookUp(dir, path, kernel.RESOLVE_IN_ROOT)
	if errno != 0 {
		n.fail(FindTarget, i, errno)
	}
	fd, errno := clone(at)
	if errno == 0 && (m.Kind == Again || m.Kind == Cover && m.Base == Void) {
		errno = n.setattr(fd, kernel.MOUNT_ATTR_RDONLY)
	}
	if errno != 0 {
		n.fail(CloneSource, i, errno)
	}
	closeFD(at)
	return fd
}

// enter makes the new root the root, and lets go of the old one.
//
//go:norace
//go:nosplit
func (n *inner) enter() {
	_, errno := sys(kernel.SYS_FCHDIR, n.tree, 0, 0, 0, 0, 0)
	if errno == 0 {
		_, errno = sys(kernel.SYS_PIVOT_ROOT, z(".\x00"), z(".\x00"), 0, 0, 0, 0)
	}
	if errno == 0 {
		_, errno = sys(kernel.SYS_UMOUNT2, z(".\x00"), kernel.MNT_DETACH, 0, 0, 0, 0)
	}
	if errno == 0 {
		_, errno = sys(kernel.SYS_CHDIR, z("/\x00"), 0, 0, 0, 0, 0)
	}
	if errno != 0 {
		n.fail(PivotRoot, -1, errno)
	}
	closeFD(n.tree)
	closeFD(n.void)
	closeFD(n.memory)
}
