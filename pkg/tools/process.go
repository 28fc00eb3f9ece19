package tools

import (
	"context"
	"errors"
	"io"
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

// A Starter starts processes that are spoken to.
type Starter interface {
	// Start starts a process and returns at once. The process ends at the latest
	// when ctx does, or at the command's time-out if it has one.
	Start(ctx context.Context, c Command) (Dialogue, error)
}

// A Dialogue is a process that is spoken to: Write is its standard input, Read
// its standard output.
type Dialogue interface {
	io.ReadWriter
	// CloseWrite ends its standard input.
	CloseWrite() error
	// Close kills what is left of its tree, and returns when that is dead.
	Close() error
	// Done is closed when all of its tree is dead; Exit is valid from then on. Of
	// standard output Exit has nothing.
	Done() <-chan struct{}
	Exit() Exit
}

// A Command is one process to start, and what it may do where confinement can
// tell. Run gives it no standard input. Paths are absolute.
type Command struct {
	Path     string   // Argv[0] is only what it is told to be called
	Argv     []string // at least one
	Env      []string // all of it
	Dir      string
	Timeout  time.Duration
	Writable []string  // directories that it may change
	ReadOnly []string  // what it may not change all the same, such as files in them; need not exist
	Readable []string  // what it may read though it would be hidden, such as a part of /run
	Overlays []Overlay // directories that it may change without changing them
	Network  bool      // may reach the network
	Limits   Limits    // zero fields: the Runner's own
}

// An Overlay is a directory that a process sees and changes as if it were its
// own, while all changes go to Upper, as overlayfs keeps them. Upper and Work are
// empty directories on one file system.
type Overlay struct{ Dir, Upper, Work string }

// ErrNoOverlay says that a command's overlay cannot be mounted on this machine.
var ErrNoOverlay = errors.New("overlayfs cannot be mounted here")

// Limits bound a process. Zero means the default in the comment.
type Limits struct {
	CPU          uint64 `json:"cpu,omitempty"`           // seconds, of each process; 60
	AddressSpace uint64 `json:"address_space,omitempty"` // bytes, of each process; 4 GiB. Under 1 GiB Go and Node do not start
	FileSize     uint64 `json:"file_size,omitempty"`     // bytes, of each file; 64 MiB
	OpenFiles    uint64 `json:"open_files,omitempty"`    // of each process; 256
	Processes    uint64 `json:"processes,omitempty"`     // of all at once; 64
	Memory       uint64 `json:"memory,omitempty"`        // bytes, of all together; where a cgroup can be had. 2 GiB
}

// An Exit is how a process ended.
type Exit struct {
	Code        int    // -1: it did not exit by itself
	Signal      string // "killed", or empty
	TimedOut    bool
	Cancelled   bool // ctx ended
	Overflowed  bool // it printed more than is bearable
	Lost        bool // whoever watched over it was killed
	OutOfMemory bool // a limit of memory killed it
	Stdout      Capture
	Stderr      Capture
	Duration    time.Duration
	Isolation   events.Isolation
}

// A Capture is what a process printed to one stream: its beginning and its end,
// with what lay between counted. SHA256 is over all of it.
type Capture struct {
	Head, Tail []byte
	Total      int64
	SHA256     string
}
