package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is one that a [Supervisor] keeps running.
type Process struct {
	Name string
	Path string // of the program
	Args []string
	Env  []string // "NAME=value", beside the supervisor's own
	// Ready blocks until the process can be used; the next one is started then.
	// Nil: at once.
	Ready func(context.Context) error
	Grace time.Duration // from SIGTERM to SIGKILL
}

// A Supervisor keeps processes running, each in a process group of its own that
// dies with the supervisor's, however that ends.
type Supervisor struct {
	Output io.Writer // what processes print, each line behind the name
	Style  Style
	Logger *slog.Logger
}

// How a process that died is started again.
const (
	firstPause = 200 * time.Millisecond
	longPause  = 10 * time.Second
	healthy    = 10 * time.Second // lived so long: the pauses begin anew
	graceful   = 10 * time.Second
)

// Sibling returns the path of a program that lies beside this one.
func Sibling(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("find %s: %w; `make build` puts all four programs side by side", name, err)
	}
	return path, nil
}

// Run starts processes in order and keeps them running until ctx ends; then it
// stops them in the opposite order, each by SIGTERM and after its grace by
// SIGKILL, and returns nil when all are gone. Up is called once all are ready.
// A process whose arguments or configuration are at fault (exit status 2) is
// not started again: that ends the run.
func (s *Supervisor) Run(ctx context.Context, up func(), processes ...Process) error {
	var running []*child
	var err error
	failed := make(chan error, len(processes))
	for _, p := range processes {
		c := s.start(p, failed)
		running = append(running, c)
		if err = s.ready(ctx, p, failed); err != nil {
			break
		}
	}
	if err == nil {
		up()
		select {
		case <-ctx.Done():
		case err = <-failed:
		}
	}
	for i := len(running) - 1; i >= 0; i-- {
		running[i].halt()
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// ready waits for a process, or for one that fails for good.
func (s *Supervisor) ready(ctx context.Context, p Process, failed chan error) error {
	if p.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Ready(ctx) }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("wait for %s: %w", p.Name, err)
		}
		return nil
	case err := <-failed:
		cancel()
		<-done
		return err
	}
}

// A child is one process and those that replace it.
type child struct {
	p    Process
	s    *Supervisor
	stop chan struct{}
	done chan struct{}
	once sync.Once
}

func (s *Supervisor) start(p Process, failed chan<- error) *child {
	c := &child{p: p, s: s, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		if err := c.keep(); err != nil {
			failed <- err
		}
	}()
	return c
}

// halt stops the child and waits until it is gone.
func (c *child) halt() {
	c.once.Do(func() { close(c.stop) })
	<-c.done
}

// keep runs the process again and again.
func (c *child) keep() error {
	// A parent-death signal comes when the thread ends that started the child,
	// so that thread waits for it and is not used for anything else.
	runtime.LockOSThread()
	pause := firstPause
	for {
		began := time.Now()
		status, err := c.run()
		select {
		case <-c.stop:
			return nil
		default:
		}
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || status == StatusUsage {
			return fmt.Errorf("%s cannot run: %s", c.p.Name, how(status, err))
		}
		if time.Since(began) > healthy {
			pause = firstPause
		}
		c.s.Logger.Warn("process ended, starting it again", "process", c.p.Name, "how", how(status, err), "in", pause)
		select {
		case <-c.stop:
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longPause)
	}
}

func how(status int, err error) string {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.String()
	case err != nil:
		return err.Error()
	}
	return fmt.Sprintf("exit status %d", status)
}

// run runs the process once.
func (c *child) run() (status int, err error) {
	out := &lineWriter{s: c.s, name: c.p.Name}
	cmd := exec.Command(c.p.Path, c.p.Args...)
	cmd.Env = append(os.Environ(), c.p.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 2 * time.Second // for whoever holds its output open
	if err := cmd.Start(); err != nil {
		return -1, err
	}
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { c.end(cmd.Process.Pid, ended) })
	await(cmd.Process.Pid)
	close(ended)
	watch.Wait()
	// Nothing of its group stays, whatever it left behind. The process has not
	// been reaped, so that its number is still its own.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	err = cmd.Wait()
	out.flush()
	return cmd.ProcessState.ExitCode(), err
}

// await waits until a child has ended, and leaves it to be reaped.
func await(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// end asks the process to end when the child is to stop, and then makes it.
func (c *child) end(pid int, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-c.stop:
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	grace := c.p.Grace
	if grace == 0 {
		grace = graceful
	}
	select {
	case <-ended:
	case <-time.After(grace):
		c.s.Logger.Warn("process does not end, killing it", "process", c.p.Name)
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
