package llama

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	ringLines  = 200      // last lines that are kept
	lineBytes  = 4 << 10  // of a line; what is longer is cut
	logBytes   = 10 << 20 // of the log file, then it becomes the old one
	crashLines = 40       // last lines that go into an event
)

// A logRing takes what llama-server prints. It keeps the last lines, writes all
// to a file, and knows when something was printed last.
type logRing struct {
	mu      sync.Mutex
	lines   []string // oldest first
	partial []byte   // a line without its end
	last    time.Time
	file    *logFile
}

func newLogRing(file *logFile) *logRing { return &logRing{file: file, last: time.Now()} }

// Write implements io.Writer; it never fails.
func (r *logRing) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	r.file.write(p)
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
		r.lines = append(r.lines, string(line[:min(len(line), lineBytes)]))
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

// A logFile is appended to by all processes of a manager in turn, and renamed
// to .old when it is large: a server that prints without end fills no disk. A
// log that cannot be written is no reason to stop a model.
type logFile struct {
	path string
	mu   sync.Mutex
	f    *os.File
	size int64
}

// openLog opens the file and makes its directory. An empty path writes nowhere.
func openLog(path string) (*logFile, error) {
	l := &logFile{path: path}
	if path == "" {
		return l, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of llama-server's log: %w", err)
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open llama-server's log: %w", err)
	}
	return l, nil
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	l.f, l.size = f, 0
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
	return nil
}

func (l *logFile) write(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return
	}
	if l.size+int64(len(p)) > logBytes {
		l.rotate()
	}
	if l.f != nil {
		n, _ := l.f.Write(p)
		l.size += int64(n)
	}
}

func (l *logFile) rotate() {
	_ = l.f.Close()
	l.f = nil
	if err := os.Rename(l.path, l.path+".old"); err == nil {
		_ = l.open()
	}
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		_ = l.f.Close()
		l.f = nil
	}
}
