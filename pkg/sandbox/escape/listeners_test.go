package escape

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// knocked is what the test itself says to a listener.
const knocked = "the test"

// listens has somebody outside listen, and remember in their order what came.
func listens(network string, address func(s *site) string) func(testing.TB, *site) {
	return func(t testing.TB, s *site) {
		l, err := net.Listen(network, address(s))
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EADDRNOTAVAIL) {
			t.Skipf("nobody can listen there: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		s.listening(t, l, network, l.Addr(), func() (string, error) {
			c, err := l.Accept()
			if err != nil {
				return "", err
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(5 * time.Second)) // what has come by then counts
			b, _ := io.ReadAll(c)
			return string(b), nil
		})
	}
}

// listensPacket does the same for datagrams.
func listensPacket(network string, address func(s *site) string) func(testing.TB, *site) {
	return func(t testing.TB, s *site) {
		l, err := net.ListenPacket(network, address(s))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 64)
		s.listening(t, l, network, l.LocalAddr(), func() (string, error) {
			n, _, err := l.ReadFrom(b)
			return string(b[:n]), err
		})
	}
}

// listening takes what comes until the end of the test, tells the attempt the
// address, and lets the role use it.
func (s *site) listening(t testing.TB, l io.Closer, network string, a net.Addr, next func() (string, error)) {
	t.Helper()
	heard, done := make(chan string, 64), make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		defer close(heard)
		for {
			text, err := next()
			if err != nil {
				return
			}
			heard <- text
		}
	}()
	s.network, s.heard, s.More["address"] = network, heard, a.String()
	if _, port, err := net.SplitHostPort(a.String()); err == nil {
		s.More["port"] = port
	}
	if filepath.IsAbs(a.String()) {
		s.role.own(t, a.String())
	}
}

// heard tells whether something reached the listener. The test itself speaks to
// it last: what the attempt sent has been read by then.
func heard(t testing.TB, s *site, _ outcome) bool {
	c, err := net.Dial(s.network, s.More["address"])
	if err == nil {
		_, err = c.Write([]byte(knocked))
		c.Close()
	}
	if err != nil {
		t.Fatalf("the listener outside is not there: %v", err)
	}
	select {
	case first, ok := <-s.heard:
		return ok && first != knocked
	case <-time.After(10 * time.Second):
		t.Fatal("the listener outside hears nothing")
		return false
	}
}
