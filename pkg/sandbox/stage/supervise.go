package stage

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A supervisor watches over one program and what that starts. It is the parent
// of everything that tries to leave: it is a subreaper, so orphans come to it. One
// goroutine reaps and kills, so that it never kills a number that has passed to
// a stranger.
type supervisor struct {
	order    Order
	inner    *inner
	children chan os.Signal
	deadline <-chan time.Time
	target   int // the program, or process 1 of its namespaces
	ended    bool
	end      unix.WaitStatus
}

// wait returns how the program ended, when nothing of it is left.
func (s *supervisor) wait(gone <-chan struct{}) (timedOut bool) {
	for !s.ended {
		select {
		case <-s.children:
			s.reap()
			continue
		case <-s.deadline:
			timedOut = true
		case <-gone:
		}
		break
	}
	s.killAll()
	return timedOut
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
		select {
		case <-s.children:
		case <-time.After(time.Millisecond): // a child that forked while it was killed
		}
	}
}
