package escape

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
)

// privilegeAttempts gain rights, or make room for gaining some.
func privilegeAttempts() []attempt {
	return []attempt{
		{name: "become root by a setuid program", by: userOnly, times: 10, prepare: privileged("/usr/bin/id", func(path string) error { return os.Chmod(path, 0o755|os.ModeSetuid) }),
			program: approved, command: argv(func(*site) []string { return []string{"id", "-u"} }),
			escaped: func(_ testing.TB, _ *site, o outcome) bool {
				return strings.TrimSpace(string(o.Exit.Stdout.Head)) == "0"
			}},
		{name: "read root's file by a program with file capabilities", by: userOnly, prepare: privileged("/bin/cat", func(path string) error {
			return unix.Setxattr(path, "security.capability", fileCapability(unix.CAP_DAC_READ_SEARCH), 0)
		}), program: approved,
			command: argv(func(s *site) []string { return []string{"cat", filepath.Join(s.Outside, "roots.txt")} }), escaped: readsSecret},
		{name: "start programs that may gain privileges (no_new_privs is off)", inside: func(*site) error {
			n, err := call(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS)
			if err == nil && n != 0 {
				err = errors.New("no_new_privs is on")
			}
			return err
		}},
		{name: "have capabilities", by: rootOnly, inside: func(*site) error {
			if strings.Trim(capEff(), "0") == "" {
				return errors.New("there is none")
			}
			return nil
		}},
		{name: "make a user namespace (unshare)", mayRefuse: "user namespaces may be off", inside: func(*site) error {
			return child(&syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWUSER}, "/bin/true")
		}},
		{name: "make a user namespace by clone", mayRefuse: "user namespaces may be off", inside: func(*site) error {
			return child(&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}, "/bin/true")
		}},
		{name: "make a user namespace by clone3", mayRefuse: "user namespaces may be off", inside: clone3User},
		{name: "become root of a user namespace and mount in it", mayRefuse: "user namespaces may be off", inside: func(s *site) error {
			return child(&syscall.SysProcAttr{
				Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
				UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
			}, "/bin/mount", "-t", "tmpfs", "none", s.Work)
		}},
		{name: "enter the worker's namespaces (setns)", by: rootOnly, inside: inThread(func(s *site) error {
			f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", s.Worker))
			if err != nil {
				return err
			}
			defer f.Close()
			return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
		})},
		{name: "enter the worker's namespaces by pidfd (setns)", by: rootOnly, inside: inThread(func(s *site) error {
			fd, err := unix.PidfdOpen(s.Worker, 0)
			if err != nil {
				return err
			}
			return unix.Setns(fd, unix.CLONE_NEWUTS)
		})},
		{name: "climb out by chroot", by: rootOnly, escaped: changedVictim, inside: func(s *site) error {
			if err := os.Mkdir("jail", 0o755); err != nil {
				return err
			}
			if err := unix.Chroot("jail"); err != nil {
				return err
			}
			for range 64 {
				if err := unix.Chdir(".."); err != nil {
					return err
				}
			}
			if err := unix.Chroot("."); err != nil {
				return err
			}
			return scribble(s.victim())
		}},
	}
}

// approved is a program outside.
func approved(s *site) string { return filepath.Join(s.Outside, "program") }

// child runs a program that has to succeed.
func child(attr *syscall.SysProcAttr, path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = attr
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// inThread does something that changes a thread, which ends with the attempt.
func inThread(do func(*site) error) func(*site) error {
	return func(s *site) error {
		runtime.LockOSThread()
		return do(s)
	}
}

// clone3User makes a process by the newer call, which a filter cannot look into.
func clone3User(*site) error {
	args := [11]uint64{unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
	runtime.LockOSThread()
	pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 { // the new process
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return err
}

// privileged puts a program outside that has more rights than the user.
func privileged(program string, grant func(path string) error) func(testing.TB, *site) {
	return func(t testing.TB, s *site) {
		if os.Geteuid() != 0 {
			t.Skip("only root can make such a program")
		}
		path := filepath.Join(s.Outside, "program")
		copyFile(t, program, path)
		if err := grant(path); err != nil {
			t.Fatal(err)
		}
		kept := filepath.Join(s.Outside, "roots.txt")
		if err := os.WriteFile(kept, []byte(s.secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// argv gives a program that is run its arguments.
func argv(args func(s *site) []string) func(*tools.Command, *site) {
	return func(c *tools.Command, s *site) { c.Argv = args(s) }
}

// fileCapability is one as a file system keeps it: version 2, effective.
func fileCapability(n int) []byte {
	var b []byte
	for _, v := range []uint32{0x02000001, 1 << n, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}
