package escape

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deviceAttempts write where the kernel is configured, and use devices. Without a
// sandbox they write back what stands there.
func deviceAttempts() []attempt {
	return []attempt{
		{name: "write /proc/sys/kernel/core_pattern", by: rootOnly, inside: same("/proc/sys/kernel/core_pattern")},
		{name: "write /proc/sys/kernel/modprobe", by: rootOnly, inside: same("/proc/sys/kernel/modprobe")},
		{name: "write /proc/sys/vm/swappiness", by: rootOnly, inside: same("/proc/sys/vm/swappiness")},
		{name: "write /proc/sys/net/ipv4/ip_forward", by: rootOnly, inside: same("/proc/sys/net/ipv4/ip_forward")},
		{name: "press a key of /proc/sysrq-trigger", by: rootOnly, inside: func(*site) error { return put("/proc/sysrq-trigger", "h") }}, // help
		{name: "write /sys/kernel", by: rootOnly, inside: same("/sys/kernel/mm/ksm/run", "/sys/kernel/mm/transparent_hugepage/defrag", "/sys/kernel/rcu_expedited", "/sys/kernel/uevent_helper")},
		{name: "write /sys/class", by: rootOnly, inside: func(*site) error {
			return rewriteAny("/sys/class/net/*/tx_queue_len", "/sys/block/*/queue/read_ahead_kb")
		}},
		{name: "have the kernel run a program when a cgroup empties (release_agent)", by: rootOnly, inside: func(*site) error { return rewriteAny("/sys/fs/cgroup/*/release_agent") }},
		{name: "make a cgroup", by: rootOnly, inside: makeCgroup},
		{name: "leave its cgroup", by: rootOnly, inside: func(*site) error {
			return firstOf("/sys/fs/cgroup/pids/cgroup.procs /sys/fs/cgroup/unified/cgroup.procs /sys/fs/cgroup/cgroup.procs", func(path string) error { return put(path, "0") })
		}},
		{name: "read the machine's memory (/dev/mem)", by: rootOnly, inside: func(*site) error { return device("/dev/mem", unix.O_RDONLY) }},
		{name: "write the kernel's log (/dev/kmsg)", by: rootOnly, inside: func(*site) error { return put("/dev/kmsg", "correx: tried by a test\n") }},
		{name: "open the loop devices", by: rootOnly, inside: func(*site) error { return device("/dev/loop-control", unix.O_RDWR) }},
		{name: "open the machine's disk", by: rootOnly, inside: func(*site) error {
			disks, _ := filepath.Glob("/dev/[vsn][dv]*")
			return firstOf(strings.Join(disks, " "), readable)
		}},
		{name: "open /dev/net/tun", by: rootOnly, inside: func(*site) error { return device("/dev/net/tun", unix.O_RDWR) }},
		{name: "open /dev/fuse", inside: func(*site) error { return device("/dev/fuse", unix.O_RDWR) }, mayRefuse: "the device may be for root only"},
		{name: "open /dev/kvm", by: rootOnly, inside: func(*site) error { return device("/dev/kvm", unix.O_RDWR) }},
		{name: "write to the worker's terminal", escaped: onTerminal, inside: func(s *site) error { return put(s.TTY, "escaped") }},
		{name: "write to its controlling terminal", escaped: onTerminal, inside: func(*site) error { return put("/dev/tty", "escaped") }},
		{name: "type into the worker's terminal (TIOCSTI)", by: rootOnly, inside: func(s *site) error {
			return terminalCall(s, unix.TIOCSTI, "x")
		}},
		{name: "paste into the worker's terminal (TIOCLINUX)", by: rootOnly, inside: func(s *site) error {
			return terminalCall(s, unix.TIOCLINUX, "\x03")
		}},
		{name: "make the worker's terminal its own (TIOCSCTTY)", by: rootOnly, inside: func(s *site) error {
			f, err := os.OpenFile(s.TTY, os.O_RDWR|unix.O_NOCTTY, 0)
			if err != nil {
				return err
			}
			_, _ = unix.Setsid() // it may lead a session already
			_, err = call(unix.SYS_IOCTL, f.Fd(), unix.TIOCSCTTY, 1)
			return err
		}},
	}
}

func put(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

func device(path string, flags int) error {
	return firstOf(path, func(path string) error {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
}

// same writes back what stands in the first of the files that is there.
func same(paths ...string) func(*site) error {
	return func(*site) error { return rewriteAny(paths...) }
}

func rewriteAny(patterns ...string) error {
	var all []string
	for _, p := range patterns {
		names, _ := filepath.Glob(p)
		all = append(all, names...)
	}
	return firstOf(strings.Join(all, " "), func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(b)
		if _, chosen, ok := strings.Cut(text, "["); ok { // one of several: always [madvise] never
			text, _, _ = strings.Cut(chosen, "]")
		}
		return put(path, text)
	})
}

// firstOf does something with the first path that is there; none is a lack of the
// machine.
func firstOf(paths string, do func(path string) error) error {
	errs := []error{fmt.Errorf("%w: none of %q", errLacking, paths)}
	for _, path := range strings.Fields(paths) {
		err := do(path)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs[:0], err)
		}
	}
	return errors.Join(errs...)
}

func makeCgroup(s *site) error {
	return firstOf("/sys/fs/cgroup/pids /sys/fs/cgroup/unified /sys/fs/cgroup", func(dir string) error {
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
			return err
		}
		group := filepath.Join(dir, s.Mark)
		if err := os.Mkdir(group, 0o755); err != nil {
			return err
		}
		return os.Remove(group)
	})
}

// terminalCall gives the worker's terminal a character.
func terminalCall(s *site, request uintptr, text string) error {
	b := []byte(text)
	f, err := os.OpenFile(s.TTY, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = call(unix.SYS_IOCTL, f.Fd(), request, pointer(&b[0]))
	if errors.Is(err, unix.ENOTTY) {
		err = fmt.Errorf("%w: %w", errLacking, err)
	}
	return err
}

// onTerminal looks whether something came out of the worker's terminal.
func onTerminal(_ testing.TB, s *site, _ outcome) bool {
	b := make([]byte, 256)
	_ = s.role.worker.master.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	n, _ := s.role.worker.master.Read(b) // nothing came
	return strings.Contains(string(b[:n]), "escaped")
}
