package stage

import (
	"encoding/binary"
	"errors"
	"io"
	"syscall"
)

// A wire writes or reads one after another the fields of what goes between a
// worker and its stage. One method of each type says which, for both ways. It is
// not JSON, since setting that up would cost a stage as much as a fork.
type wire struct {
	data    []byte
	reading bool
	failed  bool
}

func (w *wire) number(p *uint64) {
	switch {
	case !w.reading:
		w.data = binary.LittleEndian.AppendUint64(w.data, *p)
	case len(w.data) < 8:
		w.failed = true
	default:
		*p, w.data = binary.LittleEndian.Uint64(w.data), w.data[8:]
	}
}

func number[T ~int | ~int64 | ~uint16 | ~uint8 | ~uint32 | ~uint64 | ~uintptr](w *wire, p *T) {
	n := uint64(*p)
	w.number(&n)
	if w.reading { // what is written is others' too
		*p = T(n)
	}
}

func (w *wire) flag(p *bool) {
	var n uint64
	if *p {
		n = 1
	}
	w.number(&n)
	*p = n == 1
}

func (w *wire) text(p *string) {
	n := uint64(len(*p))
	w.number(&n)
	switch {
	case !w.reading:
		w.data = append(w.data, *p...)
	case uint64(len(w.data)) < n:
		w.failed = true
	default:
		*p, w.data = string(w.data[:n]), w.data[n:]
	}
}

func list[T any](w *wire, p *[]T, each func(*T)) {
	n := uint64(len(*p))
	w.number(&n)
	if w.reading {
		if n > uint64(len(w.data)) { // each takes some
			w.failed = true
			return
		}
		*p = make([]T, n)
	}
	for i := range *p {
		each(&(*p)[i])
	}
}

func (o *Order) wire(w *wire) {
	w.text(&o.Path)
	list(w, &o.Argv, w.text)
	list(w, &o.Env, w.text)
	w.text(&o.Dir)
	number(w, &o.Timeout)
	for _, l := range []*uint64{
		&o.Limits.CPU, &o.Limits.AddressSpace, &o.Limits.FileSize, &o.Limits.OpenFiles, &o.Limits.Processes, &o.Limits.Memory,
	} {
		w.number(l)
	}
	number(w, &o.Level)
	w.flag(&o.Network)
	list(w, &o.Filter, func(f *Filter) {
		number(w, &f.Code)
		number(w, &f.Jt)
		number(w, &f.Jf)
		number(w, &f.K)
	})
	list(w, &o.Nodes, func(n *Node) {
		number(w, &n.Base)
		w.text(&n.Path)
		w.text(&n.Kind)
		w.text(&n.To)
	})
	list(w, &o.Mounts, func(m *Mount) {
		number(w, &m.Kind)
		w.text(&m.Path)
		number(w, &m.Base)
		w.text(&m.Node)
		w.text(&m.Upper)
		w.text(&m.Work)
	})
	w.number(&o.Scratch)
	list(w, &o.Tasks, w.text)
	w.text(&o.Cgroup)
	w.number(&o.Handled)
}

func (s *Status) wire(w *wire) {
	fault := s.Fault != nil
	w.flag(&fault)
	if fault {
		if s.Fault == nil {
			s.Fault = &Fault{}
		}
		number(w, &s.Fault.Step)
		w.text(&s.Fault.Path)
		number(w, &s.Fault.Errno)
		w.text(&s.Fault.Text)
	}
	number(w, &s.Code)
	number(w, &s.Signal)
	w.flag(&s.TimedOut)
}

type wired interface{ wire(*wire) }

// encode puts the length in front, so that the other side knows the end.
func encode(v wired) []byte {
	w := wire{data: make([]byte, 8, 16<<10)}
	v.wire(&w)
	binary.LittleEndian.PutUint64(w.data, uint64(len(w.data)-8))
	return w.data
}

// maxOrder is more than any order: argument lists are bounded by the kernel.
const maxOrder = 64 << 20

func decode(v wired, read func([]byte) error) error {
	var head [8]byte
	if err := read(head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxOrder {
		return errors.New("it is too long")
	}
	w := wire{data: make([]byte, n), reading: true}
	if err := read(w.data); err != nil {
		return err
	}
	v.wire(&w)
	if w.failed || len(w.data) > 0 {
		return errors.New("it cannot be read")
	}
	return nil
}

// Encode makes what the stage reads.
func (o Order) Encode() []byte { return encode(&o) }

// ReadStatus reads what a stage reported, once.
func ReadStatus(r io.Reader) (Status, error) {
	var s Status
	err := decode(&s, func(b []byte) error { _, err := io.ReadFull(r, b); return err })
	return s, err
}

// readOrder reads the order without the runtime's poller.
func readOrder() (o Order, err error) {
	err = decode(&o, func(b []byte) error {
		for len(b) > 0 {
			n, err := syscall.Read(controlFD, b)
			switch {
			case err == syscall.EINTR:
			case err != nil:
				return err
			case n == 0:
				return io.ErrUnexpectedEOF
			default:
				b = b[n:]
			}
		}
		return nil
	})
	return o, err
}
