package escape

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// socketAttempts speak with somebody outside, or with the kernel about the
// machine's network.
func socketAttempts() []attempt {
	return []attempt{
		{name: "connect to a Unix socket beside the workspace", prepare: listens("unix", besideWorkspace), escaped: heard,
			inside: func(s *site) error {
				return dial(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: s.More["address"]})
			}},
		{name: "connect to a Unix socket in /run", prepare: listens("unix", func(s *site) string { return "/run/" + s.Mark }), escaped: heard,
			inside: func(s *site) error {
				return dial(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: s.More["address"]})
			}},
		{name: "connect to a Unix socket in the workspace that somebody outside listens on", prepare: listens("unix", func(s *site) string { return filepath.Join(s.Work, "s") }), escaped: heard,
			inside: func(s *site) error {
				return dial(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: s.More["address"]})
			}},
		{name: "connect to an abstract Unix socket", prepare: listens("unix", func(s *site) string { return "@" + s.Mark }), escaped: heard,
			inside: func(s *site) error {
				return dial(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: s.More["address"]})
			}},
		{name: "send to a datagram Unix socket", prepare: listensPacket("unixgram", besideWorkspace), escaped: heard,
			inside: func(s *site) error {
				return dial(unix.AF_UNIX, unix.SOCK_DGRAM, 0, &unix.SockaddrUnix{Name: s.More["address"]})
			}},
		{name: "turn one of a datagram socket pair towards a Unix socket outside", prepare: listensPacket("unixgram", besideWorkspace), escaped: heard,
			inside: func(s *site) error {
				return fromPair(func(fd int) error {
					if err := unix.Connect(fd, &unix.SockaddrUnix{Name: s.More["address"]}); err != nil {
						return err
					}
					_, err := unix.Write(fd, []byte("escaped"))
					return err
				})
			}},
		{name: "send from a datagram socket pair to a Unix socket outside", prepare: listensPacket("unixgram", besideWorkspace), escaped: heard,
			inside: func(s *site) error {
				return fromPair(func(fd int) error {
					return unix.Sendto(fd, []byte("escaped"), 0, &unix.SockaddrUnix{Name: s.More["address"]})
				})
			}},
		{name: "take a descriptor from a process outside (SCM_RIGHTS)", prepare: handsOut, escaped: changedVictim, inside: takeDescriptor},
		{name: "connect to the loopback by TCP", prepare: listens("tcp4", loopback), escaped: heard,
			inside: func(s *site) error { return dial(unix.AF_INET, unix.SOCK_STREAM, 0, inet4(s)) }},
		{name: "connect to the loopback by TCP over IPv6", prepare: listens("tcp6", func(*site) string { return "[::1]:0" }), escaped: heard,
			inside: func(s *site) error { return dial(unix.AF_INET6, unix.SOCK_STREAM, 0, inet6(s)) }},
		{name: "connect to the loopback by MPTCP", prepare: listens("tcp4", loopback), escaped: heard,
			inside: func(s *site) error { return dial(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, inet4(s)) }},
		{name: "send to the loopback by UDP", prepare: listensPacket("udp4", loopback), escaped: heard,
			inside: func(s *site) error { return dial(unix.AF_INET, unix.SOCK_DGRAM, 0, inet4(s)) }},
		{name: "connect to the loopback with TCP fast open", prepare: listens("tcp4", loopback), escaped: heard, inside: fastOpen},
		{name: "open a vsock to the hypervisor", inside: opens(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{name: "ask the kernel for the machine's interfaces by netlink", inside: interfaces},
		{name: "listen to the kernel's device events by netlink", inside: opens(unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_KOBJECT_UEVENT)},
		{name: "open a raw socket", by: rootOnly, inside: opens(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
		{name: "open a packet socket", by: rootOnly, inside: opens(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{name: "open a socket of the kernel's cryptography (AF_ALG)", inside: opens(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
		{name: "set up io_uring, which opens sockets past seccomp", inside: func(*site) error {
			var params [120]byte
			_, err := call(unix.SYS_IO_URING_SETUP, 4, pointer(&params[0]))
			return err
		}},
	}
}

func besideWorkspace(s *site) string { return filepath.Join(filepath.Dir(s.Work), "s") }
func loopback(*site) string          { return "127.0.0.1:0" }

func dial(family, kind, protocol int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("escaped"))
	return err
}

func port(s *site) int {
	n, _ := strconv.Atoi(s.More["port"]) // 0 fails in connect
	return n
}

func inet4(s *site) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: port(s), Addr: [4]byte{127, 0, 0, 1}}
}
func inet6(s *site) *unix.SockaddrInet6 {
	return &unix.SockaddrInet6{Port: port(s), Addr: [16]byte{15: 1}}
}

func opens(family, kind, protocol int) func(*site) error {
	return func(*site) error {
		fd, err := unix.Socket(family, kind, protocol)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
}

func fromPair(do func(fd int) error) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return do(pair[0])
}

func fastOpen(s *site) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("escaped"), unix.MSG_FASTOPEN, inet4(s))
}

func interfaces(*site) error {
	list, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Flags&net.FlagLoopback == 0 {
			return nil
		}
	}
	return fmt.Errorf("%w: no interface but the loopback", errLacking)
}

// handsOut has a process outside give everybody who asks a directory of its own.
func handsOut(t testing.TB, s *site) {
	l, err := net.Listen("unix", besideWorkspace(s))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	s.More["address"] = l.Addr().String()
	s.role.own(t, l.Addr().String())
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if dir, err := os.Open(s.Outside); err == nil {
				_, _, _ = c.(*net.UnixConn).WriteMsgUnix([]byte("x"), unix.UnixRights(int(dir.Fd())), nil) // the attempt sees that nothing came
				dir.Close()
			}
			c.Close()
		}
	}()
}

func takeDescriptor(s *site) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: s.More["address"]}); err != nil {
		return err
	}
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), oob, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) == 0 {
		return errors.Join(errors.New("nothing was handed out"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	f, err := unix.Openat(fds[0], "victim.txt", unix.O_WRONLY|unix.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(f, []byte("escaped"))
	return err
}
