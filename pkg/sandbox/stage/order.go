package stage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Name is what a program is called when it runs as the first stage.
const Name = "correx-sandbox-stage"

// The file descriptors that a stage is started with, besides the standard ones.
const (
	controlFD = 3 // an order, then nothing until the worker closes it: then all must die
	statusFD  = 4 // what came of it
	cgroupFD  = 5 // and above: the cgroups to enter
)

// A Level is how much an order confines.
type Level int

// The levels.
const (
	None   Level = iota // limits, and a tree that can be killed
	FSOnly              // Landlock, seccomp, no capabilities
	Full                // namespaces and a file system besides
)

// An Order tells a stage what to start, and in what.
type Order struct {
	Path    string        `json:"path"`
	Argv    []string      `json:"argv"`
	Env     []string      `json:"env"`
	Dir     string        `json:"dir"`
	Timeout time.Duration `json:"timeout,omitempty"`
	Limits  Limits        `json:"limits"`

	Level   Level    `json:"level"`
	Network bool     `json:"network,omitempty"`
	Filter  []Filter `json:"filter,omitempty"` // for seccomp
	Rules   []Rule   `json:"rules,omitempty"`  // for Landlock, at FSOnly; at Full they follow from the mounts
	Nodes   []Node   `json:"nodes,omitempty"`
	Mounts  []Mount  `json:"mounts,omitempty"` // in this order
	Scratch uint64   `json:"scratch,omitempty"`
	// Cgroups is how many cgroup v1 "tasks" files come as descriptors; Into says
	// that the one descriptor is a cgroup v2 directory instead.
	Cgroups int  `json:"cgroups,omitempty"`
	Into    bool `json:"into,omitempty"`
}

// Limits are of each process of the program, except Processes, which counts all
// of its user in the namespace: for root it does not hold.
type Limits struct {
	CPU, AddressSpace, FileSize, OpenFiles, Processes, Memory uint64
}

// A Filter is one instruction of a seccomp filter, as the kernel takes it.
type Filter struct {
	Code   uint16
	Jt, Jf uint8
	K      uint32
}

// A Rule lets Landlock allow something below a path.
type Rule struct {
	Path  string `json:"path"`
	Write bool   `json:"write,omitempty"`
}

// A Base is one of the two file systems in memory that a stage makes.
type Base int

// The bases.
const (
	Void    Base = iota // what hides something, and where it is made to hold mounts; read-only
	Scratch             // /tmp and the like: writable, and gone afterwards
)

// A Node is a directory or an empty file to make in a base.
type Node struct {
	Base Base   `json:"base"`
	Path string `json:"path"` // relative
	Kind string `json:"kind"` // "dir", "open" (a directory for everybody), "file" or "link"
	To   string `json:"to,omitempty"`
}

// A Kind says what a mount does.
type Kind int

// The kinds.
const (
	Bind     Kind = iota // what is there outside, writable
	Device               // what is there outside, as a device
	Readable             // what is there outside, read-only
	Again                // what is there inside by now, read-only
	Pin                  // what is there inside by now, so that it cannot be renamed
	Cover                // a node of a base
	Overlay              // an overlayfs
)

// A Mount is put at Path, which is absolute, has no symbolic link in it, and
// exists or is made as a node.
type Mount struct {
	Kind  Kind   `json:"kind"`
	Path  string `json:"path"`
	Base  Base   `json:"base,omitempty"`  // of a Cover
	Node  string `json:"node,omitempty"`  // of a Cover
	Upper string `json:"upper,omitempty"` // of an Overlay
	Work  string `json:"work,omitempty"`
}

// A Status is what a stage reports, once. Fault is set if the program was not
// started.
type Status struct {
	Fault    *Fault `json:"fault,omitempty"`
	Code     int    `json:"code,omitempty"`
	Signal   int    `json:"signal,omitempty"`
	TimedOut bool   `json:"timed_out,omitempty"`
	Crowded  bool   `json:"crowded,omitempty"` // killed for having too many processes
}

// A Fault is why the program was not started, or not confined.
type Fault struct {
	Step  Step          `json:"step"`
	Path  string        `json:"path,omitempty"`
	Errno syscall.Errno `json:"errno,omitempty"`
	Text  string        `json:"text,omitempty"`
}

// Error implements error.
func (f *Fault) Error() string {
	s := f.Step.String()
	if f.Path != "" {
		s += " " + f.Path
	}
	if f.Text != "" {
		return s + ": " + f.Text
	}
	return fmt.Sprintf("%s: %v", s, f.Errno)
}

// Unwrap lets errors.Is find the system's error.
func (f *Fault) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

// readOrder reads the one line that is an order.
func readOrder() (o Order, err error) {
	text := make([]byte, 0, 16<<10)
	for !bytes.HasSuffix(text, []byte("\n")) {
		text = slices.Grow(text, 4<<10)
		n, err := unix.Read(controlFD, text[len(text):cap(text)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return o, err
		case n == 0:
			return o, io.ErrUnexpectedEOF
		default:
			text = text[:len(text)+n]
		}
	}
	return o, json.Unmarshal(text, &o)
}
