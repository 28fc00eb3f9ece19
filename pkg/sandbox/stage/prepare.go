package stage

import (
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"correx/pkg/sandbox/stage/kernel"
)

// An inner is all that is needed behind the fork. What it holds is on the heap
// and stays where it is.
type inner struct {
	level    Level
	network  bool
	into     bool
	cgroup   uint64
	root     bool // the worker's user is
	uidMap   string
	gidMap   string
	nodes    []node
	mounts   []mount
	scratch  string // its size
	ruleset  uintptr
	handled  uint64 // the rights that the ruleset speaks of
	caps     int    // how many the kernel knows
	report   uintptr
	reporter int // the other end

	// The program.
	path, dir string
	argv, env []uintptr
	strings   []string // what argv and env point at
	limits    [6]limit
	filter    []Filter
	program   fprog

	// Room for what system calls take and give.
	attr      mountAttr
	how       openHow
	rule      pathBeneath
	cloneArgs cloneArgs
	record    record
	status    uint32
	mask      uint64
	action    [8]uint64
	header    capHeader
	data      [2]capData

	tree, void, memory uintptr // descriptors of the new root and the bases
}

type node struct {
	base     Base
	path, to string
	kind     string
}

type mount struct {
	Mount
	from, to          string // Path absolute, and relative to the root
	node, upper, work string
	source            uintptr
}

type limit struct {
	resource uintptr
	value    syscall.Rlimit
}

// A fprog is struct sock_fprog.
type fprog struct {
	len    uint16
	filter *Filter
}

// A pathBeneath is struct landlock_path_beneath_attr, which is packed.
type pathBeneath struct {
	allowed uint64
	parent  int32
}

// An openHow is struct open_how.
type openHow struct{ Flags, Mode, Resolve uint64 }

// A capHeader is struct __user_cap_header_struct, and capData the other.
type (
	capHeader struct {
		Version uint32
		Pid     int32
	}
	capData struct{ Effective, Permitted, Inheritable uint32 }
)

// A pollFD is struct pollfd.
type pollFD struct {
	FD              int32
	Events, Revents int16
}

// A cloneArgs is struct clone_args, with names for what is set.
type cloneArgs struct {
	flags      uint64
	_          [3]uint64
	exitSignal uint64
	_          [5]uint64
	cgroup     uint64
}

// idMap maps a number to itself.
func idMap(id int) string {
	n := strconv.Itoa(id)
	return nul(n + " " + n + " 1")
}

// nul ends a string for the kernel.
func nul(s string) string { return s + "\x00" }

// prepare makes everything that is needed behind the fork.
func prepare(o Order) (*inner, error) {
	var pipe [2]int
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		return nil, err
	}
	uid, gid := os.Getuid(), os.Getgid()
	n := &inner{
		level: o.Level, network: o.Network, into: o.Cgroup != "", root: uid == 0,
		uidMap: idMap(uid), gidMap: idMap(gid), scratch: nul(strconv.FormatUint(o.Scratch, 10)), caps: lastCapability() + 1,
		path: nul(o.Path), dir: nul(o.Dir), filter: o.Filter, reporter: pipe[0], report: uintptr(pipe[1]),
	}
	for _, x := range o.Nodes {
		n.nodes = append(n.nodes, node{base: x.Base, path: nul(x.Path), to: nul(x.To), kind: x.Kind})
	}
	for _, m := range o.Mounts {
		n.mounts = append(n.mounts, mount{
			Mount: m, from: nul(m.Path), to: nul(m.Path[1:]), node: nul(m.Node), upper: nul(m.Upper), work: nul(m.Work),
		})
	}
	n.argv, n.env = n.vector(o.Argv), n.vector(o.Env)
	if len(n.filter) > 0 {
		n.program = fprog{len: uint16(len(n.filter)), filter: &n.filter[0]}
	}
	n.handled, n.ruleset = o.Handled, rulesetFD
	if o.Cgroup != "" {
		fd, errno := sys(kernel.SYS_OPENAT, here, z(nul(o.Cgroup)), kernel.O_PATH|kernel.O_CLOEXEC, 0, 0, 0)
		if errno != 0 {
			return nil, &Fault{Step: EnterCgroup, Path: o.Cgroup, Errno: errno}
		}
		n.cgroup = uint64(fd)
	}
	n.prepareLimits(o.Limits)
	return n, nil
}

// vector makes what execve takes.
func (n *inner) vector(list []string) []uintptr {
	v := make([]uintptr, 0, len(list)+1)
	for _, s := range list {
		s = nul(s)
		n.strings = append(n.strings, s)
		v = append(v, uintptr(unsafe.Pointer(unsafe.StringData(s))))
	}
	return append(v, 0)
}

func (n *inner) prepareLimits(l Limits) {
	n.limits = [...]limit{
		{kernel.RLIMIT_CPU, lower(kernel.RLIMIT_CPU, l.CPU)},
		{kernel.RLIMIT_FSIZE, lower(kernel.RLIMIT_FSIZE, l.FileSize)},
		{kernel.RLIMIT_NOFILE, lower(kernel.RLIMIT_NOFILE, l.OpenFiles)},
		{kernel.RLIMIT_CORE, syscall.Rlimit{}},
		{kernel.RLIMIT_AS, lower(kernel.RLIMIT_AS, l.AddressSpace)},
		{kernel.RLIMIT_NPROC, lower(kernel.RLIMIT_NPROC, l.Processes)},
	}
	if n.level != Full {
		// Outside a namespace of its own the user's other processes would count.
		_ = syscall.Getrlimit(kernel.RLIMIT_NPROC, &n.limits[5].value)
	}
}

// lower is a limit that does not exceed the present one, which cannot be raised.
func lower(resource int, value uint64) syscall.Rlimit {
	var now syscall.Rlimit
	if syscall.Getrlimit(resource, &now) == nil {
		value = min(value, now.Max)
	}
	return syscall.Rlimit{Cur: value, Max: value}
}

// lastCapability is the highest that this kernel knows.
func lastCapability() int {
	for c := kernel.CAP_LAST_CAP; ; c++ { // at least those that the library knows
		if _, _, errno := syscall.RawSyscall(kernel.SYS_PRCTL, kernel.PR_CAPBSET_READ, uintptr(c+1), 0); errno != 0 {
			return c
		}
	}
}
