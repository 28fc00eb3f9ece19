package sandbox

import (
	"errors"
	"fmt"
	"runtime"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"correx/pkg/sandbox/stage"
)

// denied are the system calls that no process may make.
var denied = []string{
	// What reaches the kernel's depths.
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "kexec_load",
	"kexec_file_load", "init_module", "finit_module", "delete_module", "lookup_dcookie", "nfsservctl", "vmsplice",
	// Other processes.
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp", "migrate_pages",
	"move_pages",
	// Mounts and namespaces.
	"mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount",
	"fspick", "mount_setattr", "statmount", "listmount", "quotactl", "quotactl_fd", "swapon", "swapoff", "name_to_handle_at",
	"open_by_handle_at", "fanotify_init",
	// Keys, and the machine.
	"add_key", "request_key", "keyctl", "reboot", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname",
	"setdomainname", "syslog", "acct", "vhangup",
}

// deniedHere exist on some machines only.
var deniedHere = map[string][]string{
	"amd64": {"modify_ldt", "iopl", "ioperm", "uselib", "ustat", "sysfs", "_sysctl", "create_module", "get_kernel_syms", "query_module"},
}

// sharedIPC is what reaches other processes where there is no IPC namespace.
var sharedIPC = []string{
	"shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semctl", "semtimedop",
	"mq_open", "mq_unlink",
}

const (
	namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	protocolMPTCP = 262
	tiocLinux     = 0x541C
	refuse        = seccomp.ActionErrno // EPERM
	noSuchCall    = seccomp.Action(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
	lastKnown     = 467 // open_tree_attr; what is newer is unknown here, and does not exist inside
	x32           = 0x40000000
)

var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// makeFilter makes the seccomp filter of a level.
//
// The library knows the calls by their names and makes the jumps. It lets calls of
// a foreign architecture pass; that and more stands in front, made by hand.
func makeFilter(network bool, level stage.Level) ([]stage.Filter, error) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("make seccomp filter: %s is not supported; amd64 and arm64 are", runtime.GOARCH)
	}
	policy := seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: groups(network, level)}
	body, err := policy.Assemble()
	if err != nil {
		return nil, fmt.Errorf("make seccomp filter: %w", err)
	}
	program := append(prologue(arch, network), body...)
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("make seccomp filter: %w", err)
	}
	if len(raw) > unix.BPF_MAXINSNS {
		return nil, errors.New("make seccomp filter: it is too long")
	}
	out := make([]stage.Filter, len(raw))
	for i, r := range raw {
		out[i] = stage.Filter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}

func groups(network bool, level stage.Level) []seccomp.SyscallGroup {
	names := append(append([]string{}, denied...), deniedHere[runtime.GOARCH]...)
	if level == stage.FSOnly {
		names = append(names, sharedIPC...)
	}
	var some []seccomp.NameWithConditions
	for flag := uint64(1); flag <= namespaceFlags; flag <<= 1 {
		if namespaceFlags&flag != 0 {
			some = append(some, seccomp.NameWithConditions{Name: "clone", Conditions: seccomp.ArgumentConditions{
				{Argument: 0, Operation: seccomp.BitsSet, Value: flag},
			}})
		}
	}
	if !network {
		names = append(names, "socket")
	}
	return []seccomp.SyscallGroup{
		{Names: names, Action: refuse},
		{NamesWithCondtions: some, Action: refuse},
		{Names: []string{"clone3"}, Action: noSuchCall}, // its flags are in memory, where no filter sees them
	}
}

// prologue is what the library cannot say. It compares arguments with all 64
// bits, of which the kernel looks at 32: ioctl(fd, TIOCSTI|1<<32) would pass.
func prologue(arch uint32, network bool) []bpf.Instruction {
	const number, architecture = 0, 4
	argument := func(i uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: 16 + 8*i, Size: 4} } // its low half
	refuse := bpf.RetConstant{Val: uint32(refuse) | uint32(unix.EPERM)}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	kill := bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	out := []bpf.Instruction{
		bpf.LoadAbsolute{Off: architecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: number, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: x32, SkipFalse: 1},
		kill,
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lastKnown, SkipFalse: 1},
		bpf.RetConstant{Val: uint32(noSuchCall)},
		// One of a pair of datagram sockets can be turned towards any other socket.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKETPAIR, SkipFalse: 6},
		argument(1),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}, // the type, without flags
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
		refuse,
		allow,
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_IOCTL, SkipFalse: 5},
		argument(1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: tiocLinux, SkipFalse: 1},
		refuse,
		allow,
	}
	if network {
		out = append(out,
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipFalse: 8},
			argument(0),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 1},
			refuse,
			argument(2),
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolMPTCP, SkipTrue: 0, SkipFalse: 1},
			refuse,
			allow,
		)
	}
	return out
}
