package escape

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// kernelAttempts use calls that change the machine, or that have been the way to
// holes of the kernel. Without a sandbox they are asked for something that does no
// harm, or for nonsense, whose refusal comes after that of permission.
func kernelAttempts() []attempt {
	return []attempt{
		{name: "set the machine's domain name", by: rootOnly, prepare: keepsDomain, inside: func(s *site) error { return unix.Setdomainname([]byte(s.Mark)) },
			escaped: func(_ testing.TB, s *site, _ outcome) bool { return domain() == s.Mark }},
		{name: "set the host name", by: rootOnly, inside: func(*site) error {
			name, err := os.Hostname()
			if err != nil {
				return err
			}
			return unix.Sethostname([]byte(name))
		}},
		{name: "set the clock", by: rootOnly, inside: func(*site) error {
			var now unix.Timex
			if _, err := unix.Adjtimex(&now); err != nil {
				return err
			}
			_, err := unix.Adjtimex(&unix.Timex{Modes: unix.ADJ_TICK, Tick: now.Tick})
			return err
		}},
		{name: "reboot", by: rootOnly, inside: func(*site) error { return passed(unix.Reboot(0x7e57), unix.EINVAL) }},
		{name: "switch on swapping", by: rootOnly, inside: func(s *site) error {
			path, err := unix.BytePtrFromString(filepath.Join(s.Work, "no such file"))
			if err != nil {
				return err
			}
			_, err = call(unix.SYS_SWAPON, pointer(path))
			return passed(err, unix.ENOENT)
		}},
		{name: "load a kernel module", by: rootOnly, inside: func(*site) error {
			return passed(unix.InitModule([]byte("nonsense"), ""), unix.ENOEXEC, unix.EBADMSG)
		}},
		{name: "load a kernel to boot (kexec)", by: rootOnly, inside: func(*site) error {
			return passed(unix.KexecFileLoad(-1, -1, "", 0), unix.EBADF)
		}},
		{name: "read the kernel's log", by: rootOnly, inside: func(*site) error {
			_, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 4096))
			return err
		}},
		{name: "make a BPF map", by: rootOnly, inside: func(*site) error {
			attr := struct{ kind, key, value, entries uint32 }{2, 4, 4, 1} // an array
			_, err := call(unix.SYS_BPF, 0, structure(&attr), 16)
			return err
		}},
		{name: "count the events of the kernel (perf_event_open)", by: rootOnly, inside: func(*site) error {
			fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: unix.PERF_ATTR_SIZE_VER0}, -1, 0, -1, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		}},
		{name: "handle page faults itself (userfaultfd)", by: rootOnly, inside: func(*site) error {
			_, err := call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC)
			return err
		}},
		{name: "put a key into the kernel's keyring", inside: func(s *site) error {
			_, err := unix.AddKey("user", s.Mark, []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		}},
		{name: "search the kernel's keyrings", inside: func(*site) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
			return err
		}},
		{name: "switch the processor to another personality", inside: func(*site) error {
			_, err := call(unix.SYS_PERSONALITY, 0x0040000) // ADDR_NO_RANDOMIZE
			return err
		}, open: "it weakens the program's own defences and nobody else's; debuggers want it."},
		{name: "open a socket by the calls of 32-bit programs (int 0x80)", program: foreign, prepare: assemble(int80Socket), escaped: exits42},
		{name: "open a socket by the calls of the x32 ABI", program: foreign, prepare: assemble(x32Socket), escaped: exits42},
		{name: "trace itself by the calls of 32-bit programs (int 0x80)", program: foreign, prepare: assemble(int80Ptrace), escaped: exits42},
	}
}

func domain() string { return strings.TrimSpace(content("/proc/sys/kernel/domainname")) }

// keepsDomain puts the machine's domain name back.
func keepsDomain(t testing.TB, s *site) {
	was := domain()
	t.Cleanup(func() {
		if domain() != s.Mark {
			return
		}
		if err := unix.Setdomainname([]byte(was)); err != nil {
			t.Errorf("put back the domain name: %v", err)
		}
	})
}

// foreign is a program in the workspace, made byte by byte.
func foreign(s *site) string { return filepath.Join(s.Work, "foreign") }

func exits42(_ testing.TB, _ *site, o outcome) bool { return o.Exit.Code == 42 }

// assemble writes such a program. It exits with 42 when its call succeeded.
func assemble(code []byte) func(testing.TB, *site) {
	return func(t testing.TB, s *site) {
		if runtime.GOARCH != "amd64" {
			t.Skip("only amd64 has calls of other kinds")
		}
		writeProgram(t, foreign(s), elf(code))
		s.role.own(t, foreign(s))
	}
}
