package llama

import (
	"bytes"
	"sync"
	"time"
)

const (
	ringLines  = 200     // last lines that are kept
	lineBytes  = 4 << 10 // of a line; what is longer is cut
	crashLines = 40      // last lines that go into an event
)

// A logRing takes what llama-server prints. It keeps the last lines, writes all
// to a file, and knows when something was printed last. Secrets are in neither.
// Readers take a copy, so that none holds up the writer.
type logRing struct {
	mu      sync.Mutex
	lines   []string // oldest first
	partial []byte   // a line without its end
	last    time.Time
	file    *logFile
	hide    *redactor
}

func newLogRing(file *logFile, secrets ...string) *logRing {
	return &logRing{file: file, last: time.Now(), hide: newRedactor(secrets...)}
}

// Write implements io.Writer; it never fails.
func (r *logRing) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	for rest := p; len(rest) > 0; {
		i := bytes.IndexAny(rest, "\r\n") // progress bars end with \r
		if i < 0 {
			r.partial = append(r.partial, rest[:min(len(rest), lineBytes-min(len(r.partial), lineBytes))]...)
			break
		}
		r.partial = append(r.partial, rest[:i]...)
		r.push()
		rest = rest[i+1:]
	}
	return len(p), nil
}

func (r *logRing) push() {
	if line := bytes.TrimSpace(r.partial); len(line) > 0 {
		if len(r.lines) == ringLines {
			r.lines = append(r.lines[:0], r.lines[1:]...)
		}
		text := r.hide.clean(string(line[:min(len(line), lineBytes)]))
		r.lines = append(r.lines, text)
		r.file.line(text)
	}
	r.partial = r.partial[:0]
}

// Tail returns the last n lines, oldest first.
func (r *logRing) Tail(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	tail := r.lines[max(0, len(r.lines)-n):]
	return append([]string(nil), tail...)
}

// Last is when something was printed last, or the ring was made.
func (r *logRing) Last() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// flush takes what has no line end as a line: nothing comes after it.
func (r *logRing) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.push()
}
