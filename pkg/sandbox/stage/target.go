package stage

import (
	"math"

	"correx/pkg/sandbox/stage/kernel"
)

// securebits: being user 0 gives no capability, nothing raises one, for ever.
const securebits = 1 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// dropCapabilities gives up all capabilities, and the possibility of getting any.
//
//go:norace
//go:nosplit
func (n *inner) dropCapabilities() {
	if n.level == Full || n.root {
		if _, errno := sys(kernel.SYS_PRCTL, kernel.PR_SET_SECUREBITS, securebits, 0, 0, 0, 0); errno != 0 {
			n.fail(DropCapabilities, -1, errno)
		}
		for c := range n.caps {
			if _, errno := sys(kernel.SYS_PRCTL, kernel.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0, 0); errno != 0 {
				n.fail(DropCapabilities, -1, errno)
			}
		}
	}
	_, _ = sys(kernel.SYS_PRCTL, kernel.PR_CAP_AMBIENT, kernel.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0) // none are left below anyhow
	n.header = capHeader{Version: kernel.LINUX_CAPABILITY_VERSION_3}
	n.data = [2]capData{}
	if _, errno := sys(kernel.SYS_CAPSET, ptr(&n.header), ptr(&n.data[0]), 0, 0, 0, 0); errno != 0 {
		n.fail(DropCapabilities, -1, errno)
	}
}

// become makes this process the program. It does not return.
//
//go:norace
//go:nosplit
func (n *inner) become() {
	if n.level != Full {
		n.watchParent()
		n.resetSignals()
	}
	if n.level == FSOnly {
		n.dropCapabilities()
	}
	if n.level == Full {
		_, _ = sys(kernel.SYS_SETSID, 0, 0, 0, 0, 0, 0) // the group it came in has the stages
	}
	if _, errno := sys(kernel.SYS_CHDIR, z(n.dir), 0, 0, 0, 0, 0); errno != 0 {
		n.fail(EnterDirectory, -1, errno)
	}
	for i := range n.limits {
		l := &n.limits[i]
		if _, errno := sys(kernel.SYS_PRLIMIT64, 0, l.resource, ptr(&l.value), 0, 0, 0); errno != 0 {
			n.fail(LimitProcess, -1, errno)
		}
	}
	// For whatever is still open here, this one's end closes it.
	if _, errno := sys(kernel.SYS_CLOSE_RANGE, 3, math.MaxUint32, kernel.CLOSE_RANGE_CLOEXEC, 0, 0, 0); errno != 0 {
		n.fail(PrepareStage, -1, errno)
	}
	n.mask = 0
	_, _ = sys(kernel.SYS_RT_SIGPROCMASK, kernel.SIG_SETMASK, ptr(&n.mask), 0, 8, 0, 0)
	if n.level != None {
		n.restrict()
	}
	_, errno := sys(kernel.SYS_EXECVE, z(n.path), ptr(&n.argv[0]), ptr(&n.env[0]), 0, 0, 0)
	n.fail(Execute, -1, errno)
}

// restrict enters Landlock and seccomp.
//
//go:norace
//go:nosplit
func (n *inner) restrict() {
	if _, errno := sys(kernel.SYS_PRCTL, kernel.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		n.fail(NoNewPrivileges, -1, errno)
	}
	if _, errno := sys(kernel.SYS_LANDLOCK_RESTRICT_SELF, n.ruleset, 0, 0, 0, 0, 0); errno != 0 {
		n.fail(Landlock, -1, errno)
	}
	if len(n.filter) == 0 {
		return
	}
	if _, errno := sys(kernel.SYS_SECCOMP, kernel.SECCOMP_SET_MODE_FILTER, 0, ptr(&n.program), 0, 0, 0); errno != 0 {
		n.fail(Seccomp, -1, errno)
	}
}
