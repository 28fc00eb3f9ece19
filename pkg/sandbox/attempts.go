package sandbox

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// attemptName is what a program is called when it tries to get out of where it
// was put, so that its worker knows what holds on this machine.
const attemptName = "correx-sandbox-attempt"

// A target is what an attempt goes for. All of it is the worker's.
type target struct {
	Work    string `json:"work"`    // may be written
	Outside string `json:"outside"` // a file that may not
	Secret  string `json:"secret"`  // a file that is hidden
	Text    string `json:"text"`    // what the secret says
	Socket  string `json:"socket"`  // a Unix socket that somebody listens on
	Worker  int    `json:"worker"`  // its process
	Command string `json:"command"` // and how that was called
}

// A wayOut is one way out that is tried.
type wayOut struct {
	name string
	full bool // only full isolation has to hold it
	try  func(target) error
}

// attempts are tried in this order. Each returns nil if it got out.
var attempts = []wayOut{
	{"write a file outside", false, func(t target) error { return os.WriteFile(t.Outside, []byte("escaped"), 0o644) }},
	{"read a hidden file", false, readSecret},
	{"create .git in the workspace", true, func(t target) error { return os.WriteFile(t.Work+"/.git/config", nil, 0o644) }},
	{"make an internet socket", false, socket(unix.AF_INET, unix.SOCK_STREAM, 0)},
	{"make a packet socket", false, socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
	{"make a vsock socket", false, socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{"make an MPTCP socket", false, socket(unix.AF_INET, unix.SOCK_STREAM, 262)},
	{"connect to a Unix socket outside", false, connect},
	{"see the worker's process", true, seeWorker},
	{"signal the worker", true, signalWorker},
	{"trace another process", false, func(target) error { return unix.PtraceAttach(os.Getppid()) }},
	{"mount a file system", false, func(t target) error { return unix.Mount("none", t.Work, "tmpfs", 0, "") }},
	{"make a user namespace", false, func(target) error { return startIn(unix.CLONE_NEWUSER) }},
	{"use io_uring", false, func(target) error { return refused(unix.SYS_IO_URING_SETUP, 1, 0) }},
	{"use bpf", false, func(target) error { return refused(unix.SYS_BPF, 0, 0) }},
	{"keep a capability", false, capabilities},
	{"gain privileges by a program", false, newPrivileges},
}

// In a process that is to try, this does so and does not return.
func init() {
	if len(os.Args) > 0 && os.Args[0] == attemptName {
		attemptAll()
	}
}

func attemptAll() {
	var t target
	if len(os.Args) < 2 || json.Unmarshal([]byte(os.Args[1]), &t) != nil {
		syscall.Exit(2)
	}
	out := make([]string, len(attempts)) // empty: it got out
	for i, a := range attempts {
		if err := a.try(t); err != nil {
			out[i] = err.Error()
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(out) // nothing is read then, which is no success
	syscall.Exit(0)
}

func readSecret(t target) error {
	text, err := os.ReadFile(t.Secret)
	if err == nil && string(text) != t.Text {
		return errors.New("it has other contents")
	}
	return err
}

func socket(family, kind, protocol int) func(target) error {
	return func(target) error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func connect(t target) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: t.Socket})
}

func seeWorker(t target) error {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(t.Worker) + "/cmdline")
	if err == nil && string(text) != t.Command {
		return errors.New("another process has its number")
	}
	return err
}

func signalWorker(t target) error {
	if seeWorker(t) != nil && os.Getpid() < 100 { // in a namespace its number means nothing, or another
		return errors.New("it is in another namespace")
	}
	return unix.Kill(t.Worker, 0)
}

// startIn starts this program in namespaces.
func startIn(flags uintptr) error {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"nothing"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flags}})
	if err == nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	return err
}

// refused makes a system call with bad arguments: any error but a refusal shows that
// the kernel looked at them.
func refused(nr uintptr, a, b uintptr) error {
	_, _, errno := syscall.Syscall(nr, a, b, 0)
	if errno == unix.EPERM || errno == unix.ENOSYS {
		return errno
	}
	return nil
}

func capabilities(target) error {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if (name == "CapPrm" || name == "CapEff" || name == "CapAmb" || name == "CapBnd" && os.Getuid() == 0) && strings.Trim(value, "\t\n0") != "" {
			return nil
		}
	}
	return errors.New("there is none")
}

func newPrivileges(target) error {
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && set == 1 {
		return errors.New("no_new_privs is set")
	}
	return nil
}
