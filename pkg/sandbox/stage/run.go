package stage

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
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

// run starts no goroutine: on a busy machine each change from one to another costs
// milliseconds.
func run() int {
	// Nothing but the standard streams goes on to the program.
	if err := unix.CloseRange(controlFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		fmt.Fprintln(os.Stderr, "close descriptors:", err)
		return 1
	}
	var s supervisor
	if err := s.start(); err != nil {
		report(Status{Fault: asFault(err)})
		return 1
	}
	report(s.conclude(s.wait()))
	return 0
}

// report tells the worker. If it is dead nobody listens.
func report(s Status) {
	text, err := json.Marshal(s)
	for err == nil && len(text) > 0 {
		var n int
		if n, err = unix.Write(statusFD, text); err == nil {
			text = text[n:]
		}
	}
}

func asFault(err error) *Fault {
	if f, ok := err.(*Fault); ok {
		return f
	}
	return &Fault{Step: PrepareStage, Text: err.Error()}
}

// start reads the order and carries it out.
func (s *supervisor) start() error {
	o, err := readOrder()
	if err != nil {
		return &Fault{Step: ReadOrder, Text: err.Error()}
	}
	ignoreSignals()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // the program shall not look in here
		return fmt.Errorf("stop being dumpable: %w", err)
	}
	if err := enterCgroups(o); err != nil {
		return err
	}
	if s.inner, err = prepare(o); err != nil {
		return err
	}
	if s.target, err = s.inner.launch(); err != nil {
		return err
	}
	if o.Timeout > 0 {
		s.deadline = time.Now().Add(o.Timeout)
	}
	s.pidfd, err = unix.PidfdOpen(s.target, 0)
	return err // it dies with this process
}

// ignoreSignals has this process survive what a program sends to its group. The
// program itself starts with every signal's default.
func ignoreSignals() {
	action := [8]uint64{1} // SIG_IGN
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM} {
		_, _ = sys(unix.SYS_RT_SIGACTION, uintptr(sig), ptr(&action[0]), 0, 8, 0, 0)
	}
}

// enterCgroups moves this thread, and so what it forks, into cgroups of version
// 1. Moving all of the process would wait for the whole machine, 10 ms and more.
func enterCgroups(o Order) error {
	if o.Into {
		return nil // the fork does it
	}
	for i := range o.Cgroups {
		if _, err := unix.Write(cgroupFD+i, []byte("0")); err != nil {
			return &Fault{Step: EnterCgroup, Text: err.Error()}
		}
	}
	return nil
}
