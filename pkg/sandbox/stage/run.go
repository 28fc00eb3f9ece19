package stage

import (
	"math"
	"os"
	"syscall"
	"time"

	"correx/pkg/sandbox/stage/kernel"
)

// In a process that a worker started as a stage this does the stage's work and
// does not return: neither main nor any package that needs this one is reached.
func init() {
	if len(os.Args) == 0 || os.Args[0] != Name {
		return
	}
	// The program dies with the thread that started it. Until main runs, that is
	// this process's first one: the runtime keeps init functions there.
	syscall.Exit(run()) // not os.Exit, at which the race detector waits for a second
}

// run starts no goroutine: on a busy machine each change from one to another costs
// milliseconds.
func run() int {
	// Nothing but the standard streams goes on to the program.
	if _, errno := sys(kernel.SYS_CLOSE_RANGE, controlFD, math.MaxUint32, kernel.CLOSE_RANGE_CLOEXEC, 0, 0, 0); errno != 0 {
		report(Status{Fault: &Fault{Step: PrepareStage, Text: "close descriptors: " + errno.Error()}})
		return 1
	}
	s := new(supervisor) // on the heap, which does not move
	if err := s.start(); err != nil {
		report(Status{Fault: asFault(err)})
		return 1
	}
	report(s.conclude(s.wait()))
	return 0
}

// report tells the worker. If it is dead nobody listens.
func report(s Status) {
	_, _ = syscall.Write(statusFD, encode(&s)) // less than a pipe takes at once
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
	for _, set := range [...][2]uintptr{{kernel.PR_SET_CHILD_SUBREAPER, 1}, {kernel.PR_SET_DUMPABLE, 0}} { // the program shall not look in here
		if _, errno := sys(kernel.SYS_PRCTL, set[0], set[1], 0, 0, 0, 0); errno != 0 {
			return &Fault{Step: PrepareStage, Errno: errno}
		}
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
	fd, errno := sys(kernel.SYS_PIDFD_OPEN, uintptr(s.target), 0, 0, 0, 0, 0)
	if errno != 0 {
		return &Fault{Step: PrepareStage, Errno: errno} // it dies with this process
	}
	s.pidfd = int32(fd)
	return nil
}

// ignoreSignals has this process survive what a program sends to its group. The
// program itself starts with every signal's default.
func ignoreSignals() {
	action := [8]uint64{1} // SIG_IGN
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM} {
		_, _ = sys(kernel.SYS_RT_SIGACTION, uintptr(sig), ptr(&action[0]), 0, 8, 0, 0)
	}
}

// enterCgroups moves this thread, and so what it forks, into cgroups of version
// 1. Moving all of the process would wait for the whole machine, 10 ms and more.
func enterCgroups(o Order) error {
	for _, path := range o.Tasks {
		if errno := writeFile(nul(path), "0\x00"); errno != 0 {
			return &Fault{Step: EnterCgroup, Path: path, Errno: errno}
		}
	}
	return nil
}
