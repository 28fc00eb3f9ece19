package escape

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
)

// otherAttempts reach what is outside without opening a file there for writing, or
// have their way with the workspace itself.
func otherAttempts() []attempt {
	return []attempt{
		{name: "write into a named pipe that somebody outside reads", prepare: readsPipe, escaped: saidSomething, inside: func(s *site) error { return put(pipe(s), "escaped") }},
		{name: "rename the workspace itself", inside: func(s *site) error { return os.Rename(s.Work, s.Work+"2") },
			escaped: func(_ testing.TB, s *site, _ outcome) bool { return !exists(s.Work) }},
		{name: "replace the invocation's directory by a link to the outside", inside: func(s *site) error {
			if err := os.RemoveAll(s.Own); err != nil {
				return err
			}
			return os.Symlink(s.Outside, s.Own)
		}, escaped: func(_ testing.TB, s *site, _ outcome) bool {
			to, err := os.Readlink(s.Own)
			return err == nil && to == s.Outside
		}},
		{name: "change a directory below an overlay", times: 1, command: overlaid, escaped: changedBelow, inside: func(*site) error {
			return scribble("below.txt")
		}},
		{name: "delete in a directory below an overlay", times: 1, command: overlaid, escaped: changedBelow, inside: func(*site) error {
			return os.Remove("below.txt")
		}},
		{name: "reach the directory below an overlay by its layers", times: 1, command: overlaid, escaped: changedBelow, inside: func(s *site) error {
			if err := os.Link("below.txt", "other"); err != nil {
				return err
			}
			return scribble("other")
		}},
		{name: "write a file of the workspace that has another name outside", prepare: func(t testing.TB, s *site) {
			if err := os.Link(s.victim(), filepath.Join(s.Work, "same")); err != nil {
				t.Fatal(err)
			}
		}, escaped: changedVictim, inside: func(*site) error { return scribble("same") },
			open: "a hard link is the same file. Somebody outside made it: in the sandbox none can be made to what is outside."},
		{name: "read a file outside", inside: func(s *site) error { return readable(s.victim()) },
			open: "what is not hidden may be read: programs need the machine's. `tools.sandbox` names more that is to be hidden."},
		{name: "hold a lock on a file outside (flock)", inside: func(s *site) error {
			f, err := os.Open(s.victim())
			if err != nil {
				return err
			}
			defer f.Close()
			return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}, open: "whoever may read a file may lock it, until the time-out at the latest."},
	}
}

func pipe(s *site) string { return filepath.Join(s.Outside, "pipe") }

// readsPipe has somebody outside read a named pipe.
func readsPipe(t testing.TB, s *site) {
	if err := unix.Mkfifo(pipe(s), 0o600); err != nil {
		t.Fatal(err)
	}
	s.role.own(t, pipe(s))
	f, err := os.OpenFile(pipe(s), os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s.reader = int(f.Fd())
}

func saidSomething(t testing.TB, s *site, _ outcome) bool {
	n, err := unix.IoctlGetInt(s.reader, unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// overlaid puts an overlay over the workspace, which is not writable itself then.
func overlaid(c *tools.Command, s *site) {
	upper, lower := filepath.Join(s.Own, "upper"), filepath.Join(s.Own, "work")
	s.role.mkdir(s.role.t, upper)
	s.role.mkdir(s.role.t, lower)
	s.put(s.role.t, filepath.Join(s.Work, "below.txt"), untouched)
	c.Writable = nil
	c.Overlays = []tools.Overlay{{Dir: s.Work, Upper: upper, Work: lower}}
}

func changedBelow(_ testing.TB, s *site, _ outcome) bool {
	return content(filepath.Join(s.Work, "below.txt")) != untouched
}
