package llama

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errDied is the cause of what ends because the process ended unasked.
var errDied = errors.New("llama-server died")

// An Exit is how a process ended.
type Exit struct {
	Code   int    // -1: by a signal
	Signal string // "killed", "aborted", …; empty: it exited
}

func (e Exit) String() string {
	if e.Signal != "" {
		return "signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// A Process is one llama-server with one model, a child of this process in a
// process group of its own. It ends with its parent, however that ends: the
// kernel kills it when the thread that started it is gone, and that thread
// stays for as long as the child does. A pid file is there for machines where
// that failed, see [Reap].
type Process struct {
	Descriptor Descriptor
	Latency    time.Duration // from the spawn to the probe's answer
	Props      Props         // as it said when it was ready

	client *Client
	log    *logRing
	grace  time.Duration // from SIGTERM to SIGKILL
	socket string        // its path; empty: it listens on a port
	pid    int
	cancel context.CancelCauseFunc
	ctx    context.Context // of all that is asked of it
	done   chan struct{}   // closed when it is dead and waited for

	oomKills uint64 // of the system, before this process began

	mu   sync.Mutex
	gone bool // dead: its pid may be another's soon
	exit Exit
}

// Client talks to the process.
func (p *Process) Client() *Client { return p.client }

// PID is its process id.
func (p *Process) PID() int { return p.pid }

// Done is closed when the process is dead.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how the process ended; it holds once Done is closed.
func (p *Process) Exit() Exit { p.mu.Lock(); defer p.mu.Unlock(); return p.exit }

// Tail returns the last n lines that the process printed.
func (p *Process) Tail(n int) []string { return p.log.Tail(n) }

// Context ends when the process is stopped or dies. Whoever asks something of
// the process does it under this one, for a server with a client connected does
// not end on SIGTERM.
func (p *Process) Context() context.Context { return p.ctx }

// Stop ends the process and returns when it is dead. What is still asked of it
// is cancelled first, with cause. It may be called any number of times.
func (p *Process) Stop(cause error) {
	p.cancel(cause)
	p.signal(syscall.SIGTERM)
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

// signal sends s to the process, and SIGKILL to its whole group.
func (p *Process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.gone:
	case s == syscall.SIGKILL:
		_ = syscall.Kill(-p.pid, s)
	default:
		_ = syscall.Kill(p.pid, s)
	}
}

// start runs cmd and fills in p. The pid file is written before anything else
// happens; without it the child is not let live.
func (p *Process) start(cmd *exec.Cmd, pidFile string) error {
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.WaitDelay = 2 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, after the child.
		runtime.LockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.wait(cmd, pidFile)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	if pidFile == "" {
		return nil
	}
	if err := writePID(pidFile, p.pid, string(p.Descriptor.ModelID)); err != nil {
		p.Stop(err)
		return fmt.Errorf("write pid file: %w", err)
	}
	return nil
}

// wait stays until the child is dead, ends what is left of its group while the
// group's number is still its own, and reaps it.
func (p *Process) wait(cmd *exec.Cmd, pidFile string) {
	for errors.Is(unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	_ = syscall.Kill(-p.pid, syscall.SIGKILL)
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	_ = cmd.Wait() // how it ended is in the state
	p.log.flush()
	exit := exitOf(cmd.ProcessState)
	if p.socket != "" {
		_ = os.Remove(p.socket)
	}
	if pidFile != "" {
		_ = os.Remove(pidFile)
	}
	p.mu.Lock()
	p.exit = exit
	p.mu.Unlock()
	p.cancel(fmt.Errorf("%w: %s", errDied, exit))
	close(p.done)
}

func exitOf(s *os.ProcessState) Exit {
	status, ok := s.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return Exit{-1, status.Signal().String()}
	}
	return Exit{Code: s.ExitCode()}
}

// environment is this process's own without what would change the server's
// flags behind our back, and with its key, which is so in no list of processes.
func environment(key string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LLAMA_ARG_") && !strings.HasPrefix(v, "LLAMA_API_KEY=") {
			env = append(env, v)
		}
	}
	return append(env, "LLAMA_API_KEY="+key)
}
