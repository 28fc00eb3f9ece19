package escape

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processAttempts reach for processes outside.
func processAttempts() []attempt {
	const yama = "the kernel may forbid it (Yama)"
	return []attempt{
		{name: "kill a process of the machine", prepare: startVictim, escaped: victimDied, inside: func(s *site) error { return unix.Kill(s.Victim, unix.SIGKILL) }},
		{name: "kill a process of the machine by pidfd", prepare: startVictim, escaped: victimDied, inside: func(s *site) error {
			fd, err := unix.PidfdOpen(s.Victim, 0)
			if err != nil {
				return err
			}
			return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}},
		{name: "kill the process group of a process of the machine", prepare: startVictim, escaped: victimDied, inside: func(s *site) error { return unix.Kill(-s.Victim, unix.SIGKILL) }},
		{name: "have the kernel signal a process of the machine (F_SETOWN)", prepare: startVictim, escaped: victimDied, inside: signalByOwner},
		{name: "find anybody to signal but its own (kill -1, signal 0)", inside: func(*site) error { return unix.Kill(-1, 0) }},
		{name: "signal the worker", inside: func(s *site) error { return unix.Kill(s.Worker, 0) }},
		{name: "kill the stage that watches over it", from: none, command: within(time.Second), escaped: func(_ testing.TB, _ *site, o outcome) bool { return o.Exit.Lost }, script: "kill -KILL $PPID; sleep 600"},
		{name: "forge the report of the stage", from: none, by: rootOnly, escaped: func(_ testing.TB, _ *site, o outcome) bool { return o.Exit.Code == 0 },
			script: `for fd in 3 4 5 6 7 8 9; do echo '{"ended":true,"code":0}' >/proc/$PPID/fd/$fd; done; kill -KILL $PPID; exit 7`},
		{name: "trace the worker (ptrace)", mayRefuse: yama, inside: func(s *site) error { return seize(s.Worker) }},
		{name: "trace a process of the machine (ptrace)", mayRefuse: yama, prepare: startVictim, inside: func(s *site) error { return seize(s.Victim) }},
		{name: "trace a child of its own (ptrace)", inside: traceChild},
		{name: "read the worker's memory (process_vm_readv)", mayRefuse: yama, escaped: readsSecret, inside: func(s *site) error {
			b := make([]byte, s.Length)
			_, err := unix.ProcessVMReadv(s.Worker, []unix.Iovec{iovec(b)}, []unix.RemoteIovec{{Base: s.Address, Len: s.Length}}, 0)
			fmt.Printf("%s\n", b)
			return err
		}},
		{name: "write the worker's memory (process_vm_writev)", mayRefuse: yama, inside: func(s *site) error {
			b := make([]byte, s.Length)
			if _, err := unix.ProcessVMReadv(s.Worker, []unix.Iovec{iovec(b)}, []unix.RemoteIovec{{Base: s.Address, Len: s.Length}}, 0); err != nil {
				return err
			}
			_, err := unix.ProcessVMWritev(s.Worker, []unix.Iovec{iovec(b)}, []unix.RemoteIovec{{Base: s.Address, Len: s.Length}}, 0)
			return err
		}},
		{name: "take a descriptor out of the worker (pidfd_getfd)", mayRefuse: yama, escaped: changedLeaked, inside: func(s *site) error {
			fd, err := unix.PidfdOpen(s.Worker, 0)
			if err != nil {
				return err
			}
			if _, err := unix.PidfdGetfd(fd, 3, 0); err != nil {
				return err
			}
			return throughDescriptors(s)
		}},
		{name: "change the priority of a process of the machine", prepare: startVictim, inside: func(s *site) error { return unix.Setpriority(unix.PRIO_PROCESS, s.Victim, 19) },
			escaped: func(t testing.TB, s *site, _ outcome) bool {
				n, err := unix.Getpriority(unix.PRIO_PROCESS, s.Victim)
				if err != nil {
					t.Fatal(err)
				}
				return n == 20-19 // as the bare system call has it
			}},
		{name: "change the limits of a process of the machine", prepare: startVictim, inside: func(s *site) error {
			return unix.Prlimit(s.Victim, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 7, Max: 7}, nil)
		}, escaped: func(_ testing.TB, s *site, _ outcome) bool {
			return strings.Contains(strings.Join(strings.Fields(content(fmt.Sprintf("/proc/%d/limits", s.Victim))), " "), "Max open files 7 7")
		}},
		{name: "bind a process of the machine to one processor", prepare: startVictim, inside: func(s *site) error {
			set := unix.CPUSet{}
			set.Set(0)
			return unix.SchedSetaffinity(s.Victim, &set)
		}},
		{name: "make a process of the machine the first to die for want of memory", prepare: startVictim, inside: func(s *site) error {
			return os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", s.Victim), []byte("777"), 0)
		}, escaped: func(_ testing.TB, s *site, _ outcome) bool {
			return strings.TrimSpace(content(fmt.Sprintf("/proc/%d/oom_score_adj", s.Victim))) == "777"
		}},
		{name: "overwrite a running program of the machine through /proc/PID/exe", prepare: startVictim, inside: overwriteExe,
			escaped: func(_ testing.TB, s *site, _ outcome) bool {
				return content(filepath.Join(s.Outside, "victim")) == "escaped"
			}},
		{name: "replace the worker's program", prepare: func(t testing.TB, s *site) { s.put(t, filepath.Join(s.Outside, "tool-worker"), untouched) },
			inside: func(s *site) error {
				return made(func() error { return os.Rename("evil", filepath.Join(s.Outside, "tool-worker")) })
			},
			escaped: func(_ testing.TB, s *site, _ outcome) bool {
				return content(filepath.Join(s.Outside, "tool-worker")) != untouched
			}},
	}
}

func iovec(b []byte) unix.Iovec {
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	return v
}

func pointer(b *byte) uintptr { return uintptr(unsafe.Pointer(b)) }

// signalByOwner makes a stranger the owner of a socket pair's signals.
func signalByOwner(s *site) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	for _, c := range []struct{ command, value int }{{unix.F_SETOWN, s.Victim}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC}} {
		if _, err := unix.FcntlInt(uintptr(pair[0]), c.command, c.value); err != nil {
			return err
		}
	}
	_, err = unix.Write(pair[1], []byte("x"))
	return err
}

// seize attaches to a process and lets it go again.
func seize(pid int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(pid); err != nil {
		return err
	}
	return nil // the end of this process lets it go
}

func traceChild(*site) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	var ws unix.WaitStatus
	if _, err := unix.Wait4(cmd.Process.Pid, &ws, 0, nil); err != nil {
		return err
	}
	return unix.PtraceCont(cmd.Process.Pid, 0)
}

// overwriteExe holds a program open until nobody runs it, then writes it.
func overwriteExe(s *site) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/exe", s.Victim))
	if err != nil {
		return err
	}
	pidfd, err := unix.PidfdOpen(s.Victim, 0)
	if err != nil {
		return err
	}
	if err := unix.Kill(s.Victim, unix.SIGKILL); err != nil {
		return err
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 5000); err != nil {
		return err
	}
	return scribble(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}
