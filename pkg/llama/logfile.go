package llama

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	logBytes = 10 << 20  // of the log file, then it becomes the old one
	logRate  = 64 << 10  // bytes a second that go into it for long
	logBurst = 512 << 10 // bytes that may come at once
)

// A logFile is appended to by all processes of a manager in turn, and renamed
// to .old when it is large. What comes faster than logRate is left out, and how
// much is said: a server that prints without end fills no disk and wears none
// out. A log that cannot be written is no reason to stop a model.
type logFile struct {
	path string
	mu   sync.Mutex
	f    *os.File
	size int64

	credit  float64   // bytes that may be written now
	counted time.Time // when credit was
	left    int       // lines left out since the last one written
	now     func() time.Time
}

// openLog opens the file and makes its directory. An empty path writes nowhere.
func openLog(path string) (*logFile, error) {
	l := &logFile{path: path, credit: logBurst, now: time.Now}
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

// line writes one line, if there is credit for it.
func (l *logFile) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return
	}
	now := l.now()
	l.credit = min(logBurst, l.credit+now.Sub(l.counted).Seconds()*logRate)
	l.counted = now
	if l.credit < float64(len(text)+1) {
		l.left++
		return
	}
	l.mention()
	l.write(text)
}

// mention says how many lines were left out.
func (l *logFile) mention() {
	if l.left > 0 {
		n := l.left
		l.left = 0
		l.write(fmt.Sprintf("(%d lines that came too fast were left out)", n))
	}
}

func (l *logFile) write(text string) {
	l.credit -= float64(len(text) + 1)
	if l.size+int64(len(text)+1) > logBytes {
		l.rotate()
	}
	if l.f != nil {
		n, _ := l.f.WriteString(text + "\n")
		l.size += int64(n)
	}
}

// rotate makes the file the old one, unless another worker of this machine has
// done so already.
func (l *logFile) rotate() {
	mine, err := l.f.Stat()
	there, thereErr := os.Stat(l.path)
	_ = l.f.Close()
	l.f = nil
	if err == nil && thereErr == nil && os.SameFile(mine, there) {
		if os.Rename(l.path, l.path+".old") != nil {
			return
		}
	}
	_ = l.open()
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f != nil {
		l.mention()
		_ = l.f.Close()
		l.f = nil
	}
}
