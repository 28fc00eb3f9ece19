package stage

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// In a process that a worker started as a stage this does the stage's work and
// does not return: neither main nor any package that needs this one is reached.
func init() {
	if len(os.Args) > 0 && os.Args[0] == AttemptName {
		attemptAll()
	}
	if len(os.Args) == 0 || os.Args[0] != Name {
		return
	}
	runtime.LockOSThread() // the program dies with the thread that started it
	debug.SetGCPercent(-1) // what is prepared for the fork stays; a stage is small and short
	syscall.Exit(run())    // not os.Exit, at which the race detector waits for a second
}

func run() int {
	// Nothing but the standard streams goes on to the program.
	if err := unix.CloseRange(controlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		fmt.Fprintln(os.Stderr, "close descriptors:", err)
		return 1
	}
	control, report := os.NewFile(controlFD, "control"), json.NewEncoder(os.NewFile(statusFD, "status"))
	s := supervisor{children: make(chan os.Signal, 1)}
	signal.Notify(s.children, unix.SIGCHLD)
	// Caught and dropped.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE, unix.SIGQUIT)
	gone, err := s.start(control)
	if err != nil {
		_ = report.Encode(Status{Fault: asFault(err)}) // nobody reads it if the worker is dead
		return 1
	}
	_ = report.Encode(s.conclude(s.wait(gone)))
	return 0
}

func asFault(err error) *Fault {
	if f, ok := err.(*Fault); ok {
		return f
	}
	return &Fault{Step: PrepareStage, Text: err.Error()}
}

// start reads the order and carries it out. gone is closed when the worker is.
func (s *supervisor) start(control io.Reader) (gone <-chan struct{}, err error) {
	o, err := readOrder(control)
	if err != nil {
		return nil, &Fault{Step: ReadOrder, Text: err.Error()}
	}
	closed := make(chan struct{})
	go func() { // ends with the process at the latest
		_, _ = io.Copy(io.Discard, control)
		close(closed)
	}()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // the program shall not look in here
		return nil, fmt.Errorf("stop being dumpable: %w", err)
	}
	if err := enterCgroups(o); err != nil {
		return nil, err
	}
	n, err := prepare(o)
	if err != nil {
		return nil, err
	}
	s.order, s.inner = o, n
	if s.target, err = n.launch(); err != nil {
		return nil, err
	}
	if o.Timeout > 0 {
		s.deadline = time.After(o.Timeout)
	}
	return closed, nil
}

// enterCgroups moves this thread, and so what it forks, into cgroups of version
// 1. Moving all of the process would wait for the whole machine, 10 ms and more.
func enterCgroups(o Order) error {
	if o.Into {
		return nil // the fork does it
	}
	for i := range o.Cgroups {
		if _, err := unix.Write(cgroupFD+i, []byte("0")); err != nil {
			return &Fault{Step: EnterCgroup, Errno: err.(syscall.Errno)}
		}
	}
	return nil
}
