package stage

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A supervisor watches over one program and what that starts. It is the parent
// of everything that tries to leave: it is a subreaper, so orphans come to it. One
// goroutine reaps and kills, so that it never kills a number that has passed to
// a stranger.
type supervisor struct {
	inner    *inner
	deadline time.Time // zero: there is none
	target   int       // the program, or process 1 of its namespaces
	pidfd    int
	ended    bool
	end      unix.WaitStatus
}

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
		if gone := pollFor(s.pidfd, pause); gone {
			break
		}
		s.reap()
	}
	s.killAll()
	return timedOut
}

// pollFor waits until the process ends, the worker lets go, which it reports, or
// some time has passed.
func pollFor(pidfd int, pause time.Duration) (gone bool) {
	fds := [2]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}, {Fd: controlFD, Events: unix.POLLIN}}
	t := unix.NsecToTimespec(pause.Nanoseconds())
	_, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, ptr(&fds[0]), 2, ptr(&t), 0, 8, 0)
	return errno == 0 && fds[1].Revents != 0
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
			end = unix.WaitStatus(r.a)
		case crowdReport:
			out.Crowded = true
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
func (s *supervisor) killAll() {
	for s.reap() {
		killChildren()
		pause := unix.NsecToTimespec(int64(time.Millisecond / 4)) // for those that forked while they were killed
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, ptr(&pause), 0, 8, 0)
	}
}
