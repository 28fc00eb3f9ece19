package stage

import (
	"syscall"
	"unsafe"

	"correx/pkg/sandbox/stage/kernel"
)

// What is in this file is called after the fork. It must not allocate, block in
// the scheduler, or start anything. Nor may it look whether the stack must grow,
// as every function does that is not marked nosplit: that is also where Go asks a
// goroutine to make room for another, and here nobody would ever wake it again.

// here is AT_FDCWD.
const here = ^uintptr(99)

//go:norace
//go:nosplit
func sys(nr, a, b, c, d, e, f uintptr) (uintptr, syscall.Errno) {
	for {
		r, _, errno := syscall.RawSyscall6(nr, a, b, c, d, e, f)
		if errno != syscall.EINTR {
			return r, errno
		}
	}
}

// z is the address of a string that ends in NUL, is constant or prepared, and so
// does not move.
//
//go:norace
//go:nosplit
func z(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }

// ptr is the address of something on the heap, which does not move.
//
//go:norace
//go:nosplit
func ptr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// A mountAttr is struct mount_attr, with a name for what is set.
type mountAttr struct {
	set uint64
	_   [3]uint64
}

//go:norace
//go:nosplit
func (n *inner) setattr(fd uintptr, attr uint64) syscall.Errno {
	n.attr = mountAttr{set: attr}
	_, errno := sys(kernel.SYS_MOUNT_SETATTR, fd, z("\x00"), kernel.AT_EMPTY_PATH|kernel.AT_RECURSIVE, ptr(&n.attr), unsafe.Sizeof(n.attr), 0)
	return errno
}

// clone makes a detached copy of the mounts at a descriptor.
//
//go:norace
//go:nosplit
func clone(fd uintptr) (uintptr, syscall.Errno) {
	return sys(kernel.SYS_OPEN_TREE, fd, z("\x00"), kernel.AT_EMPTY_PATH|kernel.AT_RECURSIVE|kernel.OPEN_TREE_CLONE|kernel.OPEN_TREE_CLOEXEC, 0, 0, 0)
}

// attach puts a detached mount at a descriptor.
//
//go:norace
//go:nosplit
func attach(mount, at uintptr) syscall.Errno {
	_, errno := sys(kernel.SYS_MOVE_MOUNT, mount, z("\x00"), at, z("\x00"), kernel.MOVE_MOUNT_F_EMPTY_PATH|kernel.MOVE_MOUNT_T_EMPTY_PATH, 0)
	return errno
}

// lookUp opens a path, through no symbolic link, without looking at what it is.
//
//go:norace
//go:nosplit
func (n *inner) lookUp(dir uintptr, path string, resolve uint64) (uintptr, syscall.Errno) {
	n.how = openHow{Flags: kernel.O_PATH | kernel.O_CLOEXEC, Resolve: resolve | kernel.RESOLVE_NO_SYMLINKS}
	return sys(kernel.SYS_OPENAT2, dir, z(path), ptr(&n.how), unsafe.Sizeof(n.how), 0, 0)
}

//go:norace
//go:nosplit
func closeFD(fd uintptr) { _, _ = sys(kernel.SYS_CLOSE, fd, 0, 0, 0, 0, 0) }

// Of fsconfig.
const (
	setFlag   = 0
	setString = 1
	setFD     = 5
	create    = 6
)

//go:norace
//go:nosplit
func fsopen(kind string) (uintptr, syscall.Errno) {
	return sys(kernel.SYS_FSOPEN, z(kind), kernel.FSOPEN_CLOEXEC, 0, 0, 0, 0)
}

//go:norace
//go:nosplit
func fsconfig(fs uintptr, cmd uintptr, key, value uintptr, aux uintptr) syscall.Errno {
	_, errno := sys(kernel.SYS_FSCONFIG, fs, cmd, key, value, aux, 0)
	return errno
}

//go:norace
//go:nosplit
func fsmount(fs uintptr, attr uintptr) (uintptr, syscall.Errno) {
	if errno := fsconfig(fs, create, 0, 0, 0); errno != 0 {
		return 0, errno
	}
	return sys(kernel.SYS_FSMOUNT, fs, kernel.FSMOUNT_CLOEXEC, attr, 0, 0, 0)
}

//go:norace
//go:nosplit
func writeFile(path string, data string) syscall.Errno {
	fd, errno := sys(kernel.SYS_OPENAT, here, z(path), kernel.O_WRONLY|kernel.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	_, errno = sys(kernel.SYS_WRITE, fd, z(data), uintptr(len(data)-1), 0, 0, 0)
	closeFD(fd)
	return errno
}
