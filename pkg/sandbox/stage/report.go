package stage

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"correx/pkg/sandbox/stage/kernel"
)

// A record is what comes from behind the fork.
type record struct{ kind, a, b uint32 }

const (
	faultReport = iota + 1 // step and index, and errno
	endReport              // a wait status
)

//go:norace
//go:nosplit
func (n *inner) tell(kind, a, b uint32) {
	n.record = record{kind, a, b}
	_, _ = sys(kernel.SYS_WRITE, n.report, ptr(&n.record), unsafe.Sizeof(n.record), 0, 0, 0)
}

// fail reports a fault and ends this process.
//
//go:norace
//go:nosplit
func (n *inner) fail(step Step, index int, errno syscall.Errno) {
	n.record = record{faultReport, uint32(step) | uint32(index+1)<<8, uint32(errno)}
	_, _ = sys(kernel.SYS_WRITE, n.report, ptr(&n.record), unsafe.Sizeof(n.record), 0, 0, 0)
	for {
		_, _ = sys(kernel.SYS_EXIT_GROUP, 1, 0, 0, 0, 0, 0)
	}
}

//go:norace
//go:nosplit
func exit(code uintptr) {
	for {
		_, _ = sys(kernel.SYS_EXIT_GROUP, code, 0, 0, 0, 0, 0)
	}
}

// reports reads what came, when all that could write is dead.
func (n *inner) reports() []record {
	_ = syscall.Close(int(n.report)) // the last one
	data := make([]byte, 120)        // more than ever comes
	got, err := syscall.Read(n.reporter, data)
	if err != nil {
		return nil
	}
	data = data[:got]
	var all []record
	for ; len(data) >= 12; data = data[12:] {
		all = append(all, record{
			binary.NativeEndian.Uint32(data), binary.NativeEndian.Uint32(data[4:]), binary.NativeEndian.Uint32(data[8:]),
		})
	}
	return all
}

// fault is a record as an error.
func (n *inner) fault(r record) *Fault {
	f := &Fault{Step: Step(r.a & 0xff), Errno: syscall.Errno(r.b)}
	index := int(r.a>>8) - 1
	switch f.Step {
	case OpenSource, CloneSource, MountOverlay, FindTarget, Attach, AddRule:
		if index >= 0 && index < len(n.mounts) {
			f.Path = n.mounts[index].Path
		}
	case MakeNode:
		if index >= 0 && index < len(n.nodes) {
			f.Path = trim(n.nodes[index].path)
		}
	case EnterDirectory:
		f.Path = trim(n.dir)
	case Execute:
		f.Path = trim(n.path)
	}
	return f
}

func trim(s string) string { return s[:len(s)-1] }
