package escape

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runPlain runs a command as a program without a sandbox would: with the worker's
// environment, and a time-out that asks the process to end.
func runPlain(r request) outcome {
	c := r.Command
	var stdout, stderr keep
	cmd := &exec.Cmd{
		Path: c.Path, Args: c.Argv, Env: append(os.Environ(), c.Env...), Dir: c.Dir,
		Stdout: &stdout, Stderr: &stderr, WaitDelay: time.Second,
	}
	o := outcome{ID: r.ID}
	if err := cmd.Start(); err != nil {
		o.Error = err.Error()
		return o
	}
	asked := time.AfterFunc(c.Timeout, func() { _ = cmd.Process.Signal(unix.SIGTERM) })
	given := time.AfterFunc(c.Timeout+time.Second/2, func() {
		_ = cmd.Process.Signal(unix.SIGCONT)
		_ = cmd.Process.Kill()
	})
	began := time.Now()
	err := cmd.Wait()
	o.Exit.TimedOut = !asked.Stop()
	o.Forced = !given.Stop()
	o.Exit.Duration = time.Since(began)
	o.Exit.Code = cmd.ProcessState.ExitCode()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		o.Exit.Signal = ws.Signal().String()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		o.Error = err.Error()
	}
	o.Exit.Stdout.Head, o.Exit.Stdout.Total = stdout.get()
	o.Exit.Stderr.Head, o.Exit.Stderr.Total = stderr.get()
	return o
}

// A keep keeps the beginning of what is written to it, and counts the rest.
type keep struct {
	mu    sync.Mutex
	head  []byte
	total int64
}

func (k *keep) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.total += int64(len(b))
	k.head = append(k.head, b[:min(len(b), 64<<10-len(k.head))]...)
	return len(b), nil
}

func (k *keep) get() ([]byte, int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.head, k.total
}
