package stage

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// AttemptName is what a program is called when it tries to get out of where it
// was put, so that its worker knows what holds on this machine.
const AttemptName = "correx-sandbox-attempt"

// A Target is what an attempt goes for. All of it is the worker's.
type Target struct {
	Work    string `json:"work"`    // may be written
	Outside string `json:"outside"` // a file that may not
	Secret  string `json:"secret"`  // a file that is hidden
	Text    string `json:"text"`    // what the secret says
	Socket  string `json:"socket"`  // a Unix socket that somebody listens on
	Worker  int    `json:"worker"`  // its process
	Command string `json:"command"` // and how that was called
}

// An Attempt is one way out that is tried.
type Attempt struct {
	Name string
	Full bool // only full isolation has to hold it
	try  func(Target) error
}

// Attempts are tried in this order. Each returns nil if it got out.
var Attempts = []Attempt{
	{"write a file outside", false, func(t Target) error { return os.WriteFile(t.Outside, []byte("escaped"), 0o644) }},
	{"read a hidden file", false, readSecret},
	{"create .git in the workspace", true, func(t Target) error { return os.WriteFile(t.Work+"/.git/config", nil, 0o644) }},
	{"make an internet socket", false, socket(unix.AF_INET, unix.SOCK_STREAM, 0)},
	{"make a packet socket", false, socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
	{"make a vsock socket", false, socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
	{"make an MPTCP socket", false, socket(unix.AF_INET, unix.SOCK_STREAM, 262)},
	{"connect to a Unix socket outside", false, connect},
	{"see the worker's process", true, seeWorker},
	{"signal the worker", true, signalWorker},
	{"trace another process", false, func(Target) error { return unix.PtraceAttach(os.Getppid()) }},
	{"mount a file system", false, func(t Target) error { return unix.Mount("none", t.Work, "tmpfs", 0, "") }},
	{"make a user namespace", false, func(Target) error { return start(unix.CLONE_NEWUSER) }},
	{"use io_uring", false, func(Target) error { return raw(unix.SYS_IO_URING_SETUP, 1, 0) }},
	{"use bpf", false, func(Target) error { return raw(unix.SYS_BPF, 0, 0) }},
	{"keep a capability", false, capabilities},
	{"gain privileges by a program", false, newPrivileges},
}

// In a process that is to try, this does so and does not return.
func attemptAll() {
	var t Target
	if len(os.Args) < 2 || json.Unmarshal([]byte(os.Args[1]), &t) != nil {
		syscall.Exit(2)
	}
	out := make([]string, len(Attempts)) // empty: it got out
	for i, a := range Attempts {
		if err := a.try(t); err != nil {
			out[i] = err.Error()
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(out) // nothing is read then, which is no success
	syscall.Exit(0)
}

func readSecret(t Target) error {
	text, err := os.ReadFile(t.Secret)
	if err == nil && string(text) != t.Text {
		return errors.New("it has other contents")
	}
	return err
}

func socket(family, kind, protocol int) func(Target) error {
	return func(Target) error {
		fd, err := unix.Socket(family, kind, protocol)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func connect(t Target) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: t.Socket})
}

func seeWorker(t Target) error {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(t.Worker) + "/cmdline")
	if err == nil && string(text) != t.Command {
		return errors.New("another process has its number")
	}
	return err
}

func signalWorker(t Target) error {
	if seeWorker(t) != nil && os.Getpid() < 100 { // in a namespace its number means nothing, or another
		return errors.New("it is in another namespace")
	}
	return unix.Kill(t.Worker, 0)
}

// start starts this program in namespaces.
func start(flags uintptr) error {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"nothing"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: flags}})
	if err == nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	return err
}

// raw makes a system call with bad arguments: any error but a refusal shows that
// the kernel looked at them.
func raw(nr uintptr, a, b uintptr) error {
	_, _, errno := syscall.Syscall(nr, a, b, 0)
	if errno == unix.EPERM || errno == unix.ENOSYS {
		return errno
	}
	return nil
}

func capabilities(Target) error {
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

func newPrivileges(Target) error {
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && set == 1 {
		return errors.New("no_new_privs is set")
	}
	return nil
}
