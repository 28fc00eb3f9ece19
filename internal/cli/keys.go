package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Keys asks a person at a terminal.
type Keys interface {
	// Key waits for one key that is pressed from now on: what was typed before,
	// a paste, and what a terminal sends by itself are not an answer.
	Key(ctx context.Context) (rune, error)
	// Line waits for a line, without its end.
	Line(ctx context.Context) (string, error)
}

// settle is how long after a question keys are still taken for the end of what
// was being typed.
const settle = 300 * time.Millisecond

// A Terminal is a person's. It changes the terminal's mode only while it waits
// for a key.
type Terminal struct {
	mu     sync.Mutex // one question at a time
	file   *os.File
	opened func() // called when keys begin to count; nil: nobody wants to know
}

// NewTerminal asks on an open terminal.
func NewTerminal(f *os.File) *Terminal { return &Terminal{file: f} }

// Key implements [Keys].
func (t *Terminal) Key(ctx context.Context) (rune, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fd := int(t.file.Fd())
	old, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return 0, fmt.Errorf("ask on the terminal: %w", err)
	}
	one := *old
	one.Lflag &^= unix.ICANON | unix.ECHO // signals stay: Ctrl-C interrupts
	one.Cc[unix.VMIN], one.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &one); err != nil {
		return 0, fmt.Errorf("ask on the terminal: %w", err)
	}
	defer unix.IoctlSetTermios(fd, unix.TCSETS, old)
	return t.fresh(ctx, fd)
}

// fresh reads the first chunk that is one key and comes late enough.
func (t *Terminal) fresh(ctx context.Context, fd int) (rune, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(settle):
	}
	if err := unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH); err != nil {
		return 0, fmt.Errorf("ask on the terminal: %w", err)
	}
	if t.opened != nil {
		t.opened()
	}
	for {
		chunk, err := t.read(ctx, fd)
		if err != nil {
			return 0, err
		}
		if key, ok := single(chunk); ok {
			return key, nil
		}
	}
}

// single returns the key that a chunk is. A paste has more than one character; an
// arrow, a mouse click or a change of focus begins with an escape.
func single(chunk []byte) (rune, bool) {
	r, n := utf8.DecodeRune(chunk)
	if n != len(chunk) || r == utf8.RuneError || r == 0x1b {
		return 0, false
	}
	return r, true
}

// Line implements [Keys].
func (t *Terminal) Line(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	chunk, err := t.read(ctx, int(t.file.Fd()))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(chunk), "�")), nil
}

// read waits until there is something, and returns all of it.
func (t *Terminal) read(ctx context.Context, fd int) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("wait for the terminal: %w", err)
	}
	defer r.Close()
	stop := context.AfterFunc(ctx, func() { w.Close() })
	defer func() {
		if stop() {
			w.Close()
		}
	}()
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(r.Fd()), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, fmt.Errorf("wait for the terminal: %w", err)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		buf := make([]byte, 4096)
		n, err := unix.Read(fd, buf)
		if err != nil {
			return nil, fmt.Errorf("read the terminal: %w", err)
		}
		if n == 0 {
			return nil, fmt.Errorf("read the terminal: %w", io.EOF)
		}
		return buf[:n], nil
	}
}
