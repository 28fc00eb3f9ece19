package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"

	"correx/pkg/tools"
)

// Limits bound each process of a tool.
type Limits = tools.Limits

func withDefaults(l Limits) Limits {
	for _, f := range []struct {
		value *uint64
		def   uint64
	}{{&l.CPU, 60}, {&l.AddressSpace, 4 << 30}, {&l.FileSize, 64 << 20}, {&l.OpenFiles, 256}} {
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	return l
}

// apply limits this process, and so what it starts, where that does not hinder
// the process itself.
func apply(l Limits) error {
	for _, r := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"CPU time", unix.RLIMIT_CPU, l.CPU}, {"file size", unix.RLIMIT_FSIZE, l.FileSize},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles}, {"core size", unix.RLIMIT_CORE, 0},
	} {
		if err := unix.Setrlimit(r.resource, lower(r.resource, r.value)); err != nil {
			return fmt.Errorf("limit %s: %w", r.name, err)
		}
	}
	return nil
}

// applyTo limits the address space of a process that has just begun. The stage
// itself may have mapped more than that.
func applyTo(l Limits, pid int) error {
	err := unix.Prlimit(pid, unix.RLIMIT_AS, lower(unix.RLIMIT_AS, l.AddressSpace), nil)
	if err != nil && err != unix.ESRCH {
		return fmt.Errorf("limit address space: %w", err)
	}
	return nil
}

// lower is a limit that does not exceed the present one, which cannot be raised.
func lower(resource int, value uint64) *unix.Rlimit {
	var now unix.Rlimit
	if unix.Getrlimit(resource, &now) == nil {
		value = min(value, now.Max)
	}
	return &unix.Rlimit{Cur: value, Max: value}
}
