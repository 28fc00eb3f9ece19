package stage

import (
	"syscall"
	"time"

	"correx/pkg/sandbox/stage/kernel"
)

// A supervisor watches over one program and what that starts. It is the parent
// of everything that tries to leave: it is a subreaper, so orphans come to it. One
// goroutine reaps and kills, so that it never kills a number that has passed to
// a stranger.
type supervisor struct {
	inner    *inner
	deadline time.Time // zero: there is none
	target   int       // the program, or process 1 of its namespaces
	pidfd    int32
	fds      [2]pollFD
	pause    syscall.Timespec
	ended    bool
	end      syscall.WaitStatus
}

const pollIn = 1 // POLLIN

// reapEvery is how often orphans are taken in while the program runs.
const reapEvery = time.Second

// wait returns when nothing of the program is left, and whether it took too long.
func (s *supervisor) wait() (timedOut bool) {
	for !s.ended {
		pause := reapEvery
		if !s.deadline.IsZero() {
			pause = min(pause, time.Until(s.deadline))
		}
		if pause <= 0 {
			timedOut = true
			break
		}
		if gone := s.pollFor(pause); gone {
			break
		}
		s.reap()
	}
	s.killAll()
	return timedOut
}

// pollFor waits until the process ends, the worker lets go, which it reports, or
// some time has passed.
func (s *supervisor) pollFor(pause time.Duration) (gone bool) {
	s.fds = [2]pollFD{{FD: s.pidfd, Events: pollIn}, {FD: controlFD, Events: pollIn}}
	_, errno := s.poll(2, pause)
	return errno == 0 && s.fds[1].Revents != 0
}

// poll waits without the runtime's knowledge: it has nothing else to do.
func (s *supervisor) poll(n uintptr, pause time.Duration) (uintptr, syscall.Errno) {
	s.pause = syscall.NsecToTimespec(pause.Nanoseconds())
	r, _, errno := syscall.RawSyscall6(kernel.SYS_PPOLL, ptr(&s.fds[0]), n, ptr(&s.pause), 0, 8, 0)
	return r, errno
}

// conclude makes the report, with what came from below.
func (s *supervisor) conclude(timedOut bool) Status {
	out := Status{TimedOut: timedOut}
	end := s.end
	for _, r := range s.inner.reports() {
		switch r.kind {
		case faultReport:
			return Status{Fault: s.inner.fault(r)}
		case endReport:
			end = syscall.WaitStatus(r.a)
		}
	}
	out.Code = end.ExitStatus()
	if end.Signaled() {
		out.Code, out.Signal = -1, int(end.Signal())
	}
	return out
}

// reap takes in all that has died. It reports whether children are left.
func (s *supervisor) reap() (left bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, kernel.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
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
func (s *supervisor) killAll() {
	for s.reap() {
		killChildren()
		_, _ = s.poll(0, time.Millisecond/4) // for those that forked while they were killed
	}
}
