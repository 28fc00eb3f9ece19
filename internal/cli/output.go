package cli

import (
	"bytes"
	"fmt"
	"sync"
)

// outputLock keeps the lines of several processes apart.
var outputLock sync.Mutex

// A lineWriter puts a name before each line.
type lineWriter struct {
	s    *Supervisor
	name string
	rest []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			break
		}
		w.line(w.rest[:i])
		w.rest = w.rest[i+1:]
	}
	if len(w.rest) > 1<<16 {
		w.flush()
	}
	return len(b), nil
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.line(w.rest)
		w.rest = nil
	}
}

func (w *lineWriter) line(b []byte) {
	outputLock.Lock()
	defer outputLock.Unlock()
	fmt.Fprintf(w.s.Output, "%s %s\n", w.s.Style.Dim(fmt.Sprintf("%-12s│", w.name)), Visible(string(b)))
}
