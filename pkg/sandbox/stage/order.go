package stage

import (
	"syscall"
	"time"
)

// Name is what a program is called when it runs as the first stage.
const Name = "correx-sandbox-stage"

// The file descriptors that a stage is started with, besides the standard ones.
const (
	controlFD = 3 // an order, then nothing until the worker closes it: then all must die
	statusFD  = 4 // what came of it
	rulesetFD = 5 // for Landlock; not at None
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
	Path    string
	Argv    []string
	Env     []string
	Dir     string
	Timeout time.Duration
	Limits  Limits

	Level   Level
	Network bool
	Filter  []Filter // for seccomp
	Nodes   []Node
	Mounts  []Mount // in this order
	Scratch uint64
	Tasks   []string // files of cgroups of version 1 by which a thread enters them
	Cgroup  string   // the directory of one of version 2; empty: there is none
	Handled uint64   // the rights of which the Landlock ruleset speaks
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

// A Base is one of the two file systems in memory that a stage makes.
type Base int

// The bases.
const (
	Void    Base = iota // what hides something, and where it is made to hold mounts; read-only
	Scratch             // /tmp and the like: writable, and gone afterwards
)

// A Node is a directory or an empty file to make in a base.
type Node struct {
	Base Base
	Path string // relative
	Kind string // "dir", "open" (a directory for everybody), "file" or "link"
	To   string
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
	Kind  Kind
	Path  string
	Base  Base   // of a Cover
	Node  string // of a Cover
	Upper string // of an Overlay
	Work  string
}

// A Status is what a stage reports, once. Fault is set if the program was not
// started.
type Status struct {
	Fault    *Fault
	Code     int
	Signal   int
	TimedOut bool
}

// A Fault is why the program was not started, or not confined.
type Fault struct {
	Step  Step
	Path  string
	Errno syscall.Errno
	Text  string
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
	return s + ": " + f.Errno.Error()
}

// Unwrap lets errors.Is find the system's error.
func (f *Fault) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}
