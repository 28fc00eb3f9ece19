package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pty opens a terminal: what is written to person is typed at the other end.
func pty(t *testing.T) (person, terminal *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return person, terminal
}

func lflag(t *testing.T, f *os.File) uint32 {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return m.Lflag
}

// ask begins a question and returns when it is open to keys.
func ask(t *testing.T, ctx context.Context, keys *Terminal) <-chan any {
	t.Helper()
	got := make(chan any, 1)
	opened := make(chan struct{})
	keys.opened = func() { close(opened) }
	go func() {
		if r, err := keys.Key(ctx); err != nil {
			got <- err
		} else {
			got <- r
		}
	}()
	select {
	case <-opened:
	case r := <-got:
		t.Fatalf("answered %v before the question was open", r)
	case <-time.After(10 * time.Second):
		t.Fatal("the question does not open")
	}
	return got
}

func result(t *testing.T, got <-chan any) any {
	t.Helper()
	select {
	case r := <-got:
		return r
	case <-time.After(10 * time.Second):
		t.Fatal("no answer")
		return nil
	}
}

func typed(t *testing.T, f *os.File, s string) {
	t.Helper()
	if _, err := f.WriteString(s); err != nil {
		t.Fatal(err)
	}
}

func TestAnEarlierKeyIsNoAnswer(t *testing.T) {
	person, terminal := pty(t)
	typed(t, person, "aaa\na")
	got := ask(t, t.Context(), NewTerminal(terminal))
	typed(t, person, "r")
	if r := result(t, got); r != 'r' {
		t.Errorf("the answer is %v, want the key that was pressed after the question", r)
	}
}

func TestOnlyASingleKeyIsAnAnswer(t *testing.T) {
	for _, c := range []struct {
		chunk string
		key   rune
		ok    bool
	}{
		{"a", 'a', true}, {"é", 'é', true}, {"\n", '\n', true},
		{"aa", 0, false},         // a paste
		{"\x1b[I", 0, false},     // the window got the focus
		{"\x1b[M !!", 0, false},  // a mouse click
		{"\x1b", 0, false},       // escape
		{"\x1b[A", 0, false},     // an arrow
		{"\xff", 0, false},       // not UTF-8
		{"approve", 0, false},    // a paste
		{"\x1b[200~a", 0, false}, // a bracketed paste
	} {
		if key, ok := single([]byte(c.chunk)); ok != c.ok || ok && key != c.key {
			t.Errorf("%q is %q, %v", c.chunk, key, ok)
		}
	}
}

func TestTheTerminalIsLeftAsItWas(t *testing.T) {
	person, terminal := pty(t)
	before := lflag(t, terminal)
	got := ask(t, t.Context(), NewTerminal(terminal))
	if during := lflag(t, terminal); during&unix.ICANON != 0 || during&unix.ISIG == 0 {
		t.Errorf("while it is asked the mode is %#x: want single keys, and Ctrl-C as ever", during)
	}
	typed(t, person, "x")
	result(t, got)
	if after := lflag(t, terminal); after != before {
		t.Errorf("the mode is %#x, was %#x", after, before)
	}
}

func TestAQuestionCanBeTakenBack(t *testing.T) {
	_, terminal := pty(t)
	before := lflag(t, terminal)
	ctx, cancel := context.WithCancel(t.Context())
	got := ask(t, ctx, NewTerminal(terminal))
	cancel()
	if err, ok := result(t, got).(error); !ok || !errors.Is(err, context.Canceled) {
		t.Errorf("the answer is %v", err)
	}
	if after := lflag(t, terminal); after != before {
		t.Errorf("the mode is %#x, was %#x", after, before)
	}
}

func TestALine(t *testing.T) {
	person, terminal := pty(t)
	typed(t, person, "because é\n")
	got, err := NewTerminal(terminal).Line(t.Context())
	if err != nil || got != "because é" {
		t.Errorf("the line is %q (%v)", got, err)
	}
}
