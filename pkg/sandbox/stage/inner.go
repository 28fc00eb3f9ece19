package stage

import (
	"runtime"
	"syscall"
	"unsafe"

	"correx/pkg/sandbox/stage/kernel"
)

const namespaces = kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP

// launch starts the program, or at full isolation the second stage, and returns
// its number.
func (n *inner) launch() (int, error) {
	if n.root {
		// The groups of this thread, and so of what it forks. A user keeps its own.
		if _, errno := sys(kernel.SYS_SETGROUPS, 0, 0, 0, 0, 0, 0); errno != 0 {
			return 0, &Fault{Step: PrepareStage, Text: "give up groups: " + errno.Error()}
		}
	}
	n.cloneArgs = cloneArgs{exitSignal: uint64(syscall.SIGCHLD)}
	if n.level == Full {
		n.cloneArgs.flags = namespaces
		if !n.network {
			n.cloneArgs.flags |= kernel.CLONE_NEWNET
		}
	}
	if n.into {
		n.cloneArgs.flags |= kernel.CLONE_INTO_CGROUP
		n.cloneArgs.cgroup = n.cgroup
	}
	growStack()
	pid, errno := n.forkOff()
	runtime.KeepAlive(n)
	if errno != 0 {
		step := Fork
		if n.level == Full {
			step = MakeNamespaces
		}
		return 0, &Fault{Step: step, Errno: errno}
	}
	return int(pid), nil
}

// forkOff forks with all signals blocked, so that no handler of the runtime ever
// runs in the child.
//
//go:norace
//go:nosplit
//go:noinline
func (n *inner) forkOff() (uintptr, syscall.Errno) {
	n.mask = ^uint64(0)
	if _, errno := sys(kernel.SYS_RT_SIGPROCMASK, kernel.SIG_BLOCK, ptr(&n.mask), ptr(&n.action[0]), 8, 0, 0); errno != 0 {
		return 0, errno
	}
	old := n.action[0]
	pid, errno := n.fork()
	if errno == 0 && pid == 0 {
		if n.level == Full {
			n.first()
		}
		n.become()
	}
	n.mask = old
	_, _ = sys(kernel.SYS_RT_SIGPROCMASK, kernel.SIG_SETMASK, ptr(&n.mask), 0, 8, 0, 0)
	return pid, errno
}

//go:norace
//go:nosplit
func (n *inner) fork() (uintptr, syscall.Errno) {
	if n.into {
		return sys(kernel.SYS_CLONE3, ptr(&n.cloneArgs), unsafe.Sizeof(n.cloneArgs), 0, 0, 0, 0)
	}
	return sys(kernel.SYS_CLONE, uintptr(n.cloneArgs.flags|n.cloneArgs.exitSignal), 0, 0, 0, 0, 0)
}

// growStack makes room on the stack, so that it need not grow behind the fork.
//
//go:noinline
func growStack() {
	var room [32 << 10]byte
	use(&room)
}

//go:noinline
func use(b *[32 << 10]byte) { b[0], b[len(b)-1] = 1, 1 }

// first is process 1. It does not return.
//
// It makes the file system that the program sees, and moves into it. It goes by
// descriptors: what is to be seen is opened in the old tree, through no symbolic
// link, before anything is attached to the new one.
//
//go:norace
//go:nosplit
func (n *inner) first() {
	n.watchParent()
	n.mapUser()
	_, _ = sys(kernel.SYS_UMASK, 0, 0, 0, 0, 0, 0)
	if _, errno := sys(kernel.SYS_MOUNT, z("none\x00"), z("/\x00"), 0, kernel.MS_REC|kernel.MS_PRIVATE, 0, 0); errno != 0 {
		n.fail(PrivateMounts, -1, errno)
	}
	for i := range n.mounts {
		if n.mounts[i].Kind == Overlay {
			n.openOverlay(i)
		} else {
			n.open(i)
		}
	}
	n.void, n.memory = n.makeMemory(nil), n.makeMemory(&n.scratch)
	for i := range n.nodes {
		if errno := n.make(&n.nodes[i]); errno != 0 {
			n.fail(MakeNode, i, errno)
		}
	}
	proc := n.makeProc()
	n.makeRoot()
	n.attachAt(proc, "proc\x00", -1)
	for i := range n.mounts {
		n.place(i)
	}
	n.enter()
	_, _ = sys(kernel.SYS_UMASK, 0o022, 0, 0, 0, 0, 0)
	n.dropCapabilities()
	n.watchParent() // what changes credentials may forget it
	n.resetSignals()
	n.cloneArgs = cloneArgs{exitSignal: uint64(syscall.SIGCHLD)}
	n.into = false
	pid, errno := n.fork()
	if errno != 0 {
		n.fail(Fork, -1, errno)
	}
	if pid == 0 {
		n.become()
	}
	n.reapUntil(pid)
	exit(0)
}

// watchParent has this process die with the first stage, and makes sure that it
// has not died already: then nobody would read what is reported.
//
//go:norace
//go:nosplit
func (n *inner) watchParent() {
	if _, errno := sys(kernel.SYS_PRCTL, kernel.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0, 0); errno != 0 {
		n.fail(WatchParent, -1, errno)
	}
}

// mapUser maps the worker's user and group to themselves, and nobody else.
//
//go:norace
//go:nosplit
func (n *inner) mapUser() {
	// Files in /proc/self belong to this user only while it may be looked at.
	_, _ = sys(kernel.SYS_PRCTL, kernel.PR_SET_DUMPABLE, 1, 0, 0, 0, 0)
	if errno := writeFile("/proc/self/setgroups\x00", "deny\x00"); errno != 0 {
		n.fail(MapUser, -1, errno)
	}
	if errno := writeFile("/proc/self/uid_map\x00", n.uidMap); errno != 0 {
		n.fail(MapUser, -1, errno)
	}
	if errno := writeFile("/proc/self/gid_map\x00", n.gidMap); errno != 0 {
		n.fail(MapUser, -1, errno)
	}
	_, _ = sys(kernel.SYS_PRCTL, kernel.PR_SET_DUMPABLE, 0, 0, 0, 0, 0)
}

// resetSignals gives every signal its default. Process 1 of a namespace then does
// not even notice what comes from inside.
//
//go:norace
//go:nosplit
func (n *inner) resetSignals() {
	n.action = [8]uint64{}
	for s := uintptr(1); s <= 64; s++ {
		_, _ = sys(kernel.SYS_RT_SIGACTION, s, ptr(&n.action[0]), 0, 8, 0, 0) // not of KILL and STOP
	}
}

// reapUntil takes in all that dies, until the program does.
//
//go:norace
//go:nosplit
func (n *inner) reapUntil(program uintptr) {
	for {
		pid, errno := sys(kernel.SYS_WAIT4, ^uintptr(0), ptr(&n.status), 0, 0, 0, 0)
		if errno != 0 {
			exit(1) // it has a child
		}
		if pid == program {
			n.tell(endReport, n.status, 0)
			return
		}
	}
}
