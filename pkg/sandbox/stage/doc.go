// Package stage is what stands between a worker and the process of a tool.
//
// A worker executes itself once more, under the name [Name]. That process is the
// first stage: it reads an [Order], starts the program that the order names, as
// deeply confined as the order says, and kills all of it when the program ends,
// at the deadline, and when the worker lets go or dies.
//
// With full isolation the program does not run below the first stage but below a
// second one, which is process 1 of new user, mount, process, network, IPC,
// host name and cgroup namespaces. It builds the file system that the program is
// to see, gives up every capability, forks the program, and reaps. When it ends,
// however it ends, the kernel kills all that is left in there.
//
// The second stage is a fork of the first, without an exec: starting the Go
// runtime once more would cost more than all the rest. In such a fork there is
// one thread and no runtime, so what runs there (inner.go, build.go, target.go)
// makes system calls and nothing else: everything it needs was prepared before.
//
// The first stage runs in this package's init function, and this package imports
// next to nothing, so that it is over before the packages of the worker are set
// up, which takes longer than all that the stages do. They are set up in the
// order of their names as soon as what they import is; so this one must import
// nothing that comes late.
package stage
