package escape

import (
	"testing"
	"time"

	"correx/pkg/tools"
)

// lingeringAttempts outlive their end, or keep the worker waiting.
func lingeringAttempts() []attempt {
	return []attempt{
		{name: "leave a process behind in a session of its own", escaped: lives, script: "setsid sh -c 'echo up >up; exec sleep 600' >/dev/null 2>&1 </dev/null & while ! [ -e up ]; do :; done"},
		{name: "leave a daemon behind that forked twice", escaped: lives, script: `(setsid sh -c '(sh -c "echo up >up; exec sleep 600" >/dev/null 2>&1 &) ; exit 0' &) ; while ! [ -e up ]; do :; done`},
		{name: "leave a process behind that holds the output open", escaped: lives, script: "setsid sleep 600 & true"},
		{name: "ignore SIGTERM at the time-out", command: within(time.Second / 2), escaped: keptWaiting, script: "trap '' TERM HUP INT; while :; do sleep 0.1; done"},
		{name: "leave processes behind at the time-out", command: within(time.Second / 2), escaped: lives, script: "setsid sleep 600 >/dev/null 2>&1 & setsid sh -c 'sleep 600' & sleep 600"},
		{name: "fork faster than it is killed", command: within(time.Second / 2), escaped: lives, script: "f() { sleep 600 & setsid sleep 601 & }; i=0; while [ $i -lt 20 ]; do f; i=$((i+1)); done; sleep 600"},
		{name: "stop itself", command: within(time.Second / 2), escaped: keptWaiting, script: "kill -STOP $$"},
		{name: "stop the process that started it", command: within(time.Second / 2), escaped: stoppedParent, script: "kill -STOP $PPID; sleep 2"},
		{name: "wait in the kernel where no signal wakes it (vfork)", command: within(time.Second / 2), escaped: lives, program: foreign, prepare: assemble(vforkAndStay)},
		{name: "close its output and go on", command: within(time.Second / 2), escaped: keptWaiting, script: "trap '' TERM; exec >&- 2>&-; while :; do sleep 0.1; done"},
	}
}

func within(d time.Duration) func(*tools.Command, *site) {
	return func(c *tools.Command, _ *site) { c.Timeout = d }
}

// lives looks for processes that were left, when the worker holds all to be over.
func lives(t testing.TB, s *site, o outcome) bool {
	left := s.survivors()
	if len(left) > 0 {
		t.Logf("%d processes are left", len(left))
	}
	return len(left) > 0 || keptWaiting(t, s, o)
}

// keptWaiting tells whether the time-out did not end it: without a sandbox it had to
// be killed, in one it took much longer than that.
func keptWaiting(_ testing.TB, _ *site, o outcome) bool {
	return o.Forced || o.Exit.TimedOut && o.took > 15*time.Second
}

// stoppedParent tells whether the worker itself was stopped, or kept waiting.
func stoppedParent(t testing.TB, s *site, o outcome) bool {
	return o.stopped || keptWaiting(t, s, o)
}
