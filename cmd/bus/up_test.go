package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"correx/internal/testenv"
	"correx/internal/testmodel"
)

// newUpMachine is one whose processes bus up runs: echo needs an approval, and
// a scripted model calls it.
func newUpMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, state: t.TempDir()}
	err := testmodel.Scripted(filepath.Join(m.state, "scripted.gguf"), testmodel.Script{Tasks: map[string][]string{
		"echo": {testmodel.Call("echo", `{"text":"hello"}`), testmodel.Final("The echo came back.")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
tools: {echo: {enabled: true, tier: T2}}
worker: {ack_wait: 1s, drain: 2s}
models: [{name: scripted, path: scripted.gguf, context_size: 4096}]
llama_server: {path: %q}
`, testenv.LlamaServer(t))
	if err := os.WriteFile(filepath.Join(m.state, "correx.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestUp runs the real programs: all four work together, whoever is killed comes
// back, and nothing stays behind, whatever ends bus up.
func TestUp(t *testing.T) {
	m := newUpMachine(t)
	bin := testenv.Bin(t)
	up := startUp(t, bin, m.state)
	m.session(t)
	m.lists()

	for name, pid := range up.children(t, 4) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("kill %s: %v", name, err)
		}
		gone(t, name, pid)
		m.until(func() bool {
			again, ok := childrenOf(t, up.cmd.Process.Pid)[name]
			return ok && again != pid
		})
		m.until(func() bool { return m.run("request", "echo", hello, "--yes").stdout == "hello\n" })
	}
	m.session(t)

	children := up.children(t, 4)
	if err := up.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := up.wait(); err != nil {
		t.Errorf("bus up ended with %v after Ctrl-C\n%s", err, up.text)
	}
	for name, pid := range children {
		gone(t, name, pid)
	}
	t.Run("SIGKILL", func(t *testing.T) {
		up := startUp(t, bin, m.state)
		m := &machine{t: t, state: m.state}
		m.session(t) // llama-server runs
		children := up.children(t, 4)
		for name, pid := range childrenOf(t, children["model-worker"]) {
			children["below model-worker: "+name] = pid
		}
		if len(children) != 5 {
			t.Errorf("processes are %v, want a llama-server among them", children)
		}
		if err := up.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for name, pid := range children {
			gone(t, name, pid)
		}
		_ = up.wait()
	})
}

// session runs one whole: a person approves what the model wants.
func (m *machine) session(t *testing.T) {
	t.Helper()
	o := m.do(call{args: []string{"run", testmodel.Task("echo", "Say hello.")}, keys: says("a")})
	m.want(o, 0, "wants echo", "echo T2 asks for approval", "approved by operator")
	if o.stdout != "The echo came back.\n" {
		t.Errorf("the answer is %q", o.stdout)
	}
}

// lists asks the projector everything.
func (m *machine) lists() {
	m.t.Helper()
	m.want(m.run("workers"), 0, "tool-worker", "model-worker", "projector", "kernel")
	m.want(m.run("workers", "--is", "stopped", "--json"), 0, "[]")
	m.want(m.run("tools"), 0, "echo", "T2")
	m.want(m.run("models"), 0, "scripted", "LOADED")
	m.want(m.run("sessions"), 0, "COMPLETED", "Say hello.")
	m.want(m.run("sessions", "--json", "-n", "1"), 0, `"state": "COMPLETED"`)
	m.want(m.run("request", "echo", hello, "--detach", "--invocation", "waits"), 0)
	m.until(func() bool { return strings.Contains(m.run("approvals").stdout, "system/waits") })
	m.want(m.run("approvals", "--long"), 0, "echo T2 asks for approval", "digest")
	m.want(m.run("reject", "waits"), 0)
	m.want(m.run("approvals"), 0, "nothing waits")
	m.want(m.run("infer", "Say something."), 0)
	m.want(m.run("models", "unload", "scripted"), 0, "is to be unloaded")
	m.until(func() bool { return strings.Contains(m.run("models").stdout, "UNLOADED") })
	m.want(m.run("models", "load", "scripted"), 0, "is to be loaded")
	m.until(func() bool { return strings.Contains(m.run("models").stdout, " LOADED") })
	m.want(m.run("models", "load", "none"), 1, "no model-worker offers")
}

// children returns the processes of bus up, of which there are so many.
func (u *upProcess) children(t *testing.T, n int) map[string]int {
	t.Helper()
	c := childrenOf(t, u.cmd.Process.Pid)
	if len(c) != n {
		t.Fatalf("children are %v, want %d", c, n)
	}
	return c
}

// An upProcess is a bus up, and what it has printed.
type upProcess struct {
	cmd   *exec.Cmd
	text  *bytes.Buffer
	drain chan struct{}
}

// startUp returns when it says that it is up.
func startUp(t *testing.T, bin, state string) *upProcess {
	t.Helper()
	u := &upProcess{cmd: exec.Command(filepath.Join(bin, "bus"), "up", "--state", state), text: new(bytes.Buffer), drain: make(chan struct{})}
	out, err := u.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = u.cmd.Process.Kill() })
	up := make(chan struct{})
	go func() {
		defer close(u.drain)
		lines := bufio.NewScanner(io.TeeReader(out, u.text))
		for lines.Scan() {
			if strings.Contains(lines.Text(), "Ctrl-C stops everything.") {
				close(up)
			}
		}
	}()
	select {
	case <-up:
	case <-u.drain:
		t.Fatalf("bus up ended:\n%s", u.text)
	case <-time.After(60 * time.Second):
		t.Fatal("bus up does not come up")
	}
	return u
}

// wait waits until it has ended and all that it printed was read.
func (u *upProcess) wait() error {
	<-u.drain
	return u.cmd.Wait()
}

// childrenOf returns a process's children by the names of their programs.
func childrenOf(t *testing.T, parent int) map[string]int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[string]int{}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		before, after, _ := strings.Cut(string(data), ") ")
		f := strings.Fields(after)
		if len(f) < 2 || f[0] == "Z" || f[1] != strconv.Itoa(parent) {
			continue
		}
		pid, name, _ := strings.Cut(before, " (")
		if children[name], err = strconv.Atoi(pid); err != nil {
			t.Fatal(err)
		}
	}
	return children
}

// gone waits until a process has ended.
func gone(t *testing.T, name string, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			t.Error(fmt.Errorf("%s (process %d) is still there: %w", name, pid, err))
		}
		return
	}
}
