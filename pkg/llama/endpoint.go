package llama

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
)

// socketPath is how long the path of a Unix socket may be, in bytes.
const socketPath = 100

// An endpoint is where a server is to listen.
type endpoint struct {
	args   []string // that tell it so
	base   string   // for its client
	socket string   // path; empty: it is a port
}

// listen chooses the Unix socket, where one is named and works: nobody else of
// the machine can connect to it, and no other program can take it. Else it is a
// port of loopback.
func (l *Launcher) listen() (endpoint, error) {
	if l.Socket != "" && len(l.Socket) <= socketPath && !l.noSocket.Load() {
		if err := clearSocket(l.Socket); err == nil {
			return endpoint{[]string{"--host", l.Socket}, "unix:" + l.Socket, l.Socket}, nil
		}
		l.noSocket.Store(true)
	}
	choose := freePort
	if l.port != nil {
		choose = l.port
	}
	port, err := choose()
	return endpoint{[]string{"--host", "127.0.0.1", "--port", port}, "http://127.0.0.1:" + port, ""}, err
}

// clearSocket makes room for a socket: llama-server does not start where one
// was left behind.
func clearSocket(path string) error {
	if filepath.Ext(path) != ".sock" {
		return fmt.Errorf("%s does not end in .sock", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// client talks to the server at e, which is p.
func (e endpoint) client(model events.ModelID, key string, p *Process) *Client {
	if e.socket == "" {
		return NewClient(model, e.base, key, nil)
	}
	t := newTransport(e.base)
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", e.socket)
		if err != nil {
			return nil, err
		}
		if err := p.isPeer(conn.(*net.UnixConn)); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
	return NewClient(model, e.base, key, &http.Client{Transport: t})
}

// isPeer returns an error unless the other end of conn is p, or of its group.
func (p *Process) isPeer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		return cerr
	}
	if err != nil {
		return fmt.Errorf("ask who listens on the socket: %w", err)
	}
	if group, err := syscall.Getpgid(int(peer.Pid)); int(peer.Pid) == p.pid || err == nil && group == p.pid {
		return nil
	}
	return fmt.Errorf("%w: process %d instead of %d", errForeign, peer.Pid, p.pid)
}

// freePort lets the system choose a port of loopback.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("choose a port for llama-server: %w", err)
	}
	defer ln.Close()
	return strconv.Itoa(ln.Addr().(*net.TCPAddr).Port), nil
}

// portTaken reports whether a dead server could not have its port, or socket.
func portTaken(p *Process) bool {
	if p.Exit().Code != 1 {
		return false
	}
	for _, line := range p.Tail(ringLines) {
		for _, sign := range []string{"bind", "address already in use", "couldn't listen", "failed to listen"} {
			if strings.Contains(strings.ToLower(line), sign) {
				return true
			}
		}
	}
	return false
}
