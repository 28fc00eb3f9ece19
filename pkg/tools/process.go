package tools

import (
	"context"
	"time"

	"correx/pkg/events"
)

// A Runner starts processes. It is the one place where one is started for a
// tool, and so the one where it is confined.
type Runner interface {
	// Run starts a process, waits, and returns when all of its tree is dead:
	// at its end, at the time-out, when ctx ends, or when it printed too much.
	// The error says that it could not be started; how it ended is in Exit.
	Run(ctx context.Context, c Command) (Exit, error)
	// Isolation is what Run reaches on this machine.
	Isolation() events.Isolation
}

// A Command is one process to start. It gets no standard input.
type Command struct {
	Path     string   // absolute; Argv[0] is only what it is told to be called
	Argv     []string // at least one
	Env      []string // all of it
	Dir      string
	Timeout  time.Duration
	Writable []string // directories that it may write below, where confinement can tell
}

// An Exit is how a process ended.
type Exit struct {
	Code       int    // -1: it did not exit by itself
	Signal     string // "killed", or empty
	TimedOut   bool
	Cancelled  bool // ctx ended
	Overflowed bool // it printed more than is bearable
	Lost       bool // whoever watched over it was killed
	Stdout     Capture
	Stderr     Capture
	Duration   time.Duration
	Isolation  events.Isolation
}

// A Capture is what a process printed to one stream: its beginning and its end,
// with what lay between counted. SHA256 is over all of it.
type Capture struct {
	Head, Tail []byte
	Total      int64
	SHA256     string
}
