package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stageName is what a program is called when it runs as the first stage of a
// process.
const stageName = "correx-sandbox-stage"

// The file descriptors that a stage is started with, besides the standard ones.
const (
	controlFD = 3 // an order, then nothing until the worker closes it: then all must die
	statusFD  = 4 // what came of it
)

// An order tells a stage what to start.
type order struct {
	Path    string        `json:"path"`
	Argv    []string      `json:"argv"`
	Env     []string      `json:"env"`
	Dir     string        `json:"dir"`
	Timeout time.Duration `json:"timeout"`
	Limits  Limits        `json:"limits"`
}

// A status is what a stage reports: first that it started something, or why not,
// then how that ended.
type status struct {
	PID      int    `json:"pid,omitempty"`
	Error    string `json:"error,omitempty"`
	Errno    int    `json:"errno,omitempty"`
	Ended    bool   `json:"ended,omitempty"`
	Code     int    `json:"code,omitempty"`
	Signal   int    `json:"signal,omitempty"`
	TimedOut bool   `json:"timed_out,omitempty"`
}

// stageKnown says that this program calls [Stage], and can be its own stage.
var stageKnown bool

// Stage must be called first thing in main. In a process that a [Runner] started
// as a stage it does the stage's work and does not return; in any other it
// returns at once.
//
// The stage is the parent of everything that a tool starts, also of what tries to
// leave: it is a subreaper, so orphans come to it. It kills them all when the
// program ends, at the deadline, and when the worker lets go of it or dies.
func Stage() {
	stageKnown = true
	if len(os.Args) == 0 || os.Args[0] != stageName {
		return
	}
	runtime.LockOSThread()   // the program dies with the thread that started it
	syscall.Exit(runStage()) // not os.Exit, at which the race detector waits for a second
}

func runStage() int {
	// Nothing but the standard streams goes on to the program.
	if err := unix.CloseRange(controlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		fmt.Fprintln(os.Stderr, "close descriptors:", err)
		return 1
	}
	control, report := os.NewFile(controlFD, "control"), json.NewEncoder(os.NewFile(statusFD, "status"))
	s := stage{children: make(chan os.Signal, 1)}
	signal.Notify(s.children, unix.SIGCHLD)
	// Caught and dropped: what is ignored would be ignored by the program too.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE, unix.SIGQUIT)
	pid, gone, err := s.start(control)
	if err != nil {
		errno, _ := err.(syscall.Errno)
		_ = report.Encode(status{Error: err.Error(), Errno: int(errno)})
		return 1
	}
	_ = report.Encode(status{PID: pid}) // if nobody reads it, gone is closed too
	_ = report.Encode(s.wait(gone))
	return 0
}

// A stage watches over one program and what that starts. One goroutine reaps and
// kills, so that it never kills a number that has passed to a stranger.
type stage struct {
	children chan os.Signal
	deadline <-chan time.Time
	target   int
	ended    bool
	end      unix.WaitStatus
}

// start reads the order and carries it out. gone is closed when the worker is.
func (s *stage) start(control io.Reader) (pid int, gone <-chan struct{}, err error) {
	var o order
	dec := json.NewDecoder(control)
	if err := dec.Decode(&o); err != nil {
		return 0, nil, fmt.Errorf("read order: %w", err)
	}
	closed := make(chan struct{})
	go func() { // ends with the process at the latest
		_, _ = io.Copy(io.Discard, control)
		close(closed)
	}()
	if err := prctl(unix.PR_SET_CHILD_SUBREAPER, 1); err != nil {
		return 0, nil, fmt.Errorf("become subreaper: %w", err)
	}
	if err := prctl(unix.PR_SET_DUMPABLE, 0); err != nil { // the program shall not look in here
		return 0, nil, fmt.Errorf("stop being dumpable: %w", err)
	}
	if err := apply(o.Limits); err != nil {
		return 0, nil, err
	}
	p, err := syscall.ForkExec(o.Path, o.Argv, &syscall.ProcAttr{
		Dir: o.Dir, Env: o.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL},
	})
	if err != nil {
		return 0, nil, err
	}
	if err := applyTo(o.Limits, p); err != nil {
		_ = unix.Kill(p, unix.SIGKILL)
		return 0, nil, err
	}
	s.target = p
	if o.Timeout > 0 {
		s.deadline = time.After(o.Timeout)
	}
	return p, closed, nil
}

func prctl(option int, value uintptr) error { return unix.Prctl(option, value, 0, 0, 0) }

// wait returns how the program ended, when nothing of it is left.
func (s *stage) wait(gone <-chan struct{}) status {
	out := status{Ended: true}
	for !s.ended {
		select {
		case <-s.children:
			s.reap()
			continue
		case <-s.deadline:
			out.TimedOut = true
		case <-gone:
		}
		break
	}
	s.killAll()
	out.Code = s.end.ExitStatus()
	if s.end.Signaled() {
		out.Code, out.Signal = -1, int(s.end.Signal())
	}
	return out
}

// reap takes in all that has died. It reports whether children are left.
func (s *stage) reap() (left bool) {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return false // ECHILD
		case pid == 0:
			return true
		case pid == s.target:
			s.ended, s.end = true, ws
		}
	}
}

// killAll kills children until there are none. Those of a killed child become
// children of the stage, and are next.
func (s *stage) killAll() {
	for s.reap() {
		killChildren()
		select {
		case <-s.children:
		case <-time.After(time.Millisecond): // a child that forked while it was killed
		}
	}
}
