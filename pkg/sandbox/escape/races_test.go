package escape

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
)

// raceAttempts change names while somebody else uses them: one process in the
// sandbox exchanges a directory with a link to the outside without a pause, and
// meanwhile others are started that may write that directory.
func raceAttempts() []attempt {
	swap := filepath.Join("swap", "dir")
	in := func(c *tools.Command, s *site) {
		c.Dir, c.Writable = filepath.Join(s.Work, swap), []string{filepath.Join(s.Work, swap), s.Own}
	}
	return []attempt{
		{name: "swap the working directory for a link to the outside", times: rounds(), prepare: swaps(swap), escaped: changedVictim,
			command: in, script: "echo escaped >victim.txt"},
		{name: "swap a writable directory for a link to the outside", times: rounds(), prepare: swaps(swap), escaped: changedVictim,
			command: func(c *tools.Command, s *site) { in(c, s); c.Dir = s.Own }, script: `echo escaped >"$WORK/swap/dir/victim.txt"`},
		{name: "swap a directory above the working directory for a link to the outside", times: rounds(), prepare: swaps("swap"), escaped: changedVictim,
			command: func(c *tools.Command, s *site) { in(c, s) }, script: "echo escaped >victim.txt; echo escaped >../victim.txt"},
		{name: "swap a directory under a program's own path", times: rounds(), prepare: swaps(swap), escaped: changedVictim,
			script: `i=0; while [ $i -lt 300 ]; do [ -h swap/dir ] || echo escaped >swap/dir/victim.txt; i=$((i+1)); done`},
	}
}

// rounds is how often a race is run; CORREX_SOAK makes it many.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("CORREX_SOAK")); err == nil && n > 0 {
		return 500
	}
	return 40
}

// flipper is the attempt that exchanges names; it is none by itself.
const flipper = "exchange two names without a pause"

// swaps starts it at the same level, until the end of the test.
func swaps(name string) func(testing.TB, *site) {
	return func(t testing.TB, s *site) {
		s.put(t, filepath.Join(s.Work, "swap", "dir", "victim.txt"), "inside")
		s.put(t, filepath.Join(s.Outside, "dir", "victim.txt"), "in the other directory outside")
		s.link(t, s.Outside, filepath.Join(s.Work, "link"))
		s.More["swap"] = name
		stop := filepath.Join(s.Work, "stop")
		c := s.command(t, attempt{name: flipper, inside: flip})
		c.Timeout = 10 * time.Minute
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.role.run(t, s.level, c)
		}()
		t.Cleanup(func() {
			s.put(t, stop, "")
			<-done
		})
	}
}

// flip exchanges the names until it is told to stop.
func flip(s *site) error {
	for !exists("stop") {
		if err := unix.Renameat2(unix.AT_FDCWD, s.More["swap"], unix.AT_FDCWD, "link", unix.RENAME_EXCHANGE); err != nil {
			return err
		}
	}
	return nil
}
