package sandbox

import "correx/pkg/tools"

// Limits bound the processes of a tool.
type Limits = tools.Limits

var defaultLimits = Limits{
	CPU: 60, AddressSpace: 4 << 30, FileSize: 64 << 20, OpenFiles: 256, Processes: 64, Memory: 2 << 30,
}

func withDefaults(l Limits) Limits { return over(l, defaultLimits) }

// over is l, with what it leaves out taken from below.
func over(l, below Limits) Limits {
	for _, f := range []struct {
		value *uint64
		below uint64
	}{
		{&l.CPU, below.CPU}, {&l.AddressSpace, below.AddressSpace}, {&l.FileSize, below.FileSize},
		{&l.OpenFiles, below.OpenFiles}, {&l.Processes, below.Processes}, {&l.Memory, below.Memory},
	} {
		if *f.value == 0 {
			*f.value = f.below
		}
	}
	return l
}
