package escape

import (
	"fmt"
	"strings"
	"time"

	"correx/pkg/tools"
)

// An outcome is how an attempt ended.
type outcome struct {
	ID      int
	Exit    tools.Exit
	Error   string // it was not started
	Forced  bool   // SIGTERM did not end it
	Missing string // the level is not to be had on this machine, and why

	stopped bool // the worker was stopped meanwhile
	took    time.Duration
}

// text is all that was printed, and why nothing was.
func (o outcome) text() string {
	return strings.Join([]string{string(o.Exit.Stdout.Head), string(o.Exit.Stdout.Tail), string(o.Exit.Stderr.Head), o.Error}, "\n")
}

// printed tells whether a text is in what was printed.
func (o outcome) printed(text string) bool { return strings.Contains(o.text(), text) }

// did tells whether the attempt itself says that it got what it wanted.
func (o outcome) did() bool {
	return o.Exit.Code == 0 && strings.HasSuffix(strings.TrimSpace(string(o.Exit.Stdout.Head)), didIt)
}

// summary is for the log of the test.
func (o outcome) summary() string {
	text := strings.TrimSpace(o.text())
	if len(text) > 400 {
		text = text[:200] + " … " + text[len(text)-200:]
	}
	return fmt.Sprintf("exit %d %s%s %q", o.Exit.Code, o.Exit.Signal, map[bool]string{true: " (time-out)"}[o.Exit.TimedOut], text)
}
