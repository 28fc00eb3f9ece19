package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"os"
	"time"

	"correx/pkg/tools"
)

const (
	keepHead   = 64 << 10
	keepTail   = 64 << 10
	streamFull = 64 << 20 // what prints more is stopped
)

// A stream drains one output of a process, and keeps its beginning and end.
type stream struct {
	file *os.File
	full chan<- struct{}
	done chan struct{}

	head, tail []byte // tail holds up to twice keepTail, and is cut to it
	total      int64
	sum        hash.Hash
}

func newStream(f *os.File, full chan<- struct{}) *stream {
	s := &stream{file: f, full: full, done: make(chan struct{}), sum: sha256.New()}
	go s.drain()
	return s
}

func (s *stream) drain() {
	defer close(s.done)
	buf := make([]byte, 32<<10)
	for {
		n, err := s.file.Read(buf)
		before := s.total
		s.take(buf[:n])
		if before <= streamFull && s.total > streamFull {
			s.full <- struct{}{} // has room for one of each stream
		}
		if err != nil {
			return // all has been read, or nobody may write any more
		}
	}
}

func (s *stream) take(b []byte) {
	s.sum.Write(b)
	s.total += int64(len(b))
	if room := keepHead - len(s.head); room > 0 {
		n := min(room, len(b))
		s.head = append(s.head, b[:n]...)
		b = b[n:]
	}
	s.tail = append(s.tail, b...)
	if len(s.tail) > 2*keepTail {
		s.tail = append(s.tail[:0], s.tail[len(s.tail)-keepTail:]...)
	}
}

// finish returns what was captured. Whoever still holds the pipe is not waited
// for.
func (s *stream) finish() tools.Capture {
	_ = s.file.SetReadDeadline(time.Now().Add(drainWait))
	<-s.done
	s.file.Close()
	c := tools.Capture{Head: s.head, Tail: s.tail, Total: s.total}
	if len(c.Tail) > keepTail {
		c.Tail = c.Tail[len(c.Tail)-keepTail:]
	}
	if c.Total > 0 {
		c.SHA256 = hex.EncodeToString(s.sum.Sum(nil))
	}
	return c
}
