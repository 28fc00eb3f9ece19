package escape

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ipcAttempts use what processes share without a file.
func ipcAttempts() []attempt {
	return []attempt{
		{name: "read shared memory of the machine (System V)", prepare: sharesMemory, escaped: readsSecret, inside: func(s *site) error {
			memory, err := attach(s)
			if err == nil {
				fmt.Printf("%s\n", memory[:64])
			}
			return err
		}},
		{name: "write shared memory of the machine (System V)", prepare: sharesMemory, inside: func(s *site) error {
			memory, err := attach(s)
			if err == nil {
				copy(memory, "escaped")
			}
			return err
		}, escaped: func(_ testing.TB, s *site, _ outcome) bool { return string(s.shared[:7]) == "escaped" }},
		{name: "send to a message queue of the machine (System V)", prepare: hasQueue, inside: func(s *site) error {
			id, err := call(unix.SYS_MSGGET, key(s), 0)
			if err != nil {
				return err
			}
			message := struct {
				kind int64
				text [8]byte
			}{kind: 1}
			_, err = call(unix.SYS_MSGSND, id, structure(&message), 8, 0)
			return err
		}},
		{name: "change a semaphore of the machine (System V)", prepare: hasSemaphore, inside: func(s *site) error {
			id, err := call(unix.SYS_SEMGET, key(s), 1, 0)
			if err != nil {
				return err
			}
			operation := struct {
				number    uint16
				add, flag int16
			}{0, 1, 0}
			_, err = call(unix.SYS_SEMOP, id, structure(&operation), 1)
			return err
		}},
		{name: "send to a message queue of the machine (POSIX)", prepare: hasPosixQueue, inside: func(s *site) error {
			fd, err := posixQueue(s, unix.O_WRONLY)
			if err != nil {
				return err
			}
			b := []byte("escaped")
			_, err = call(unix.SYS_MQ_TIMEDSEND, fd, pointer(&b[0]), uintptr(len(b)), 0, 0)
			return err
		}},
		{name: "write shared memory of the machine (/dev/shm)", prepare: func(t testing.TB, s *site) {
			s.put(t, shm(s), untouched)
			t.Cleanup(func() { os.Remove(shm(s)) })
		}, inside: func(s *site) error { return scribble(shm(s)) },
			escaped: func(_ testing.TB, s *site, _ outcome) bool { return content(shm(s)) != untouched }},
		{name: "leave a file in /dev/shm", escaped: func(_ testing.TB, s *site, _ outcome) bool { return exists(shm(s)) && os.Remove(shm(s)) == nil },
			inside: func(s *site) error { return os.WriteFile(shm(s), []byte("x"), 0o600) }},
		{name: "leave a file in /tmp", escaped: func(_ testing.TB, s *site, _ outcome) bool {
			path := filepath.Join("/tmp", s.Mark)
			return exists(path) && os.Remove(path) == nil
		}, inside: func(s *site) error { return os.WriteFile(filepath.Join("/tmp", s.Mark), []byte("x"), 0o600) }},
	}
}

func shm(s *site) string { return filepath.Join("/dev/shm", s.Mark) }

// key is the site's own, for what has numbers for names.
func key(s *site) uintptr {
	n, _ := strconv.ParseUint(s.More["key"], 10, 31)
	return uintptr(n)
}

func (s *site) giveKey() {
	s.More["key"] = strconv.Itoa(os.Getpid()<<8 | s.role.count&0xff)
}

// sharesMemory makes a segment that everybody may use, with the secret.
func sharesMemory(t testing.TB, s *site) {
	s.giveKey()
	id, err := unix.SysvShmGet(int(key(s)), 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.shared = memory
	copy(memory, s.secret)
	t.Cleanup(func() {
		if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
			t.Errorf("remove the segment: %v", err)
		}
		if err := unix.SysvShmDetach(memory); err != nil {
			t.Errorf("let go of the segment: %v", err)
		}
	})
}

func attach(s *site) ([]byte, error) {
	id, err := unix.SysvShmGet(int(key(s)), 4096, 0)
	if err != nil {
		return nil, err
	}
	return unix.SysvShmAttach(id, 0, 0)
}

func hasQueue(t testing.TB, s *site) {
	s.giveKey()
	id, err := call(unix.SYS_MSGGET, key(s), unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := call(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0); err != nil {
			t.Errorf("remove the queue: %v", err)
		}
	})
}

func hasSemaphore(t testing.TB, s *site) {
	s.giveKey()
	id, err := call(unix.SYS_SEMGET, key(s), 1, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := call(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID, 0); err != nil {
			t.Errorf("remove the semaphore: %v", err)
		}
	})
}

func posixQueue(s *site, flags int) (uintptr, error) {
	name, err := unix.BytePtrFromString(s.Mark)
	if err != nil {
		return 0, err
	}
	attr := struct{ flags, messages, size, current, _, _, _, _ int64 }{messages: 4, size: 64}
	return call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), uintptr(flags), 0o666, structure(&attr))
}

func hasPosixQueue(t testing.TB, s *site) {
	fd, err := posixQueue(s, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if errors.Is(err, unix.ENOSYS) {
		t.Skip("this kernel has no such queues")
	}
	if err == nil {
		err = unix.Fchown(int(fd), s.role.uid, s.role.uid)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Close(int(fd))
		name, err := unix.BytePtrFromString(s.Mark)
		if err == nil {
			_, err = call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)))
		}
		if err != nil {
			t.Errorf("remove the queue: %v", err)
		}
	})
}
