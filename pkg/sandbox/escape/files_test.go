package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fileAttempts change what is outside the workspace.
func fileAttempts() []attempt {
	return append([]attempt{
		{name: "write a file outside by its absolute path", escaped: changedVictim, inside: func(s *site) error { return scribble(s.victim()) }},
		{name: "write a file outside through `..`", escaped: changedVictim, inside: func(*site) error { return scribble("../outside/victim.txt") }},
		{name: "write through a symbolic link made inside", escaped: changedVictim, inside: func(s *site) error {
			if err := os.Symlink(s.victim(), "link"); err != nil {
				return err
			}
			return scribble("link")
		}},
		{name: "write below a symbolic link to a directory outside", escaped: changedVictim, inside: func(s *site) error {
			if err := os.Symlink(s.Outside, "dir"); err != nil {
				return err
			}
			return scribble("dir/victim.txt")
		}},
		{name: "hard-link a file outside into the workspace and write it", escaped: changedVictim, inside: func(s *site) error {
			if err := os.Link(s.victim(), "mine"); err != nil {
				return err
			}
			return scribble("mine")
		}},
		{name: "hard-link a file of the workspace to the outside", escaped: appears(planted), inside: func(s *site) error {
			return made(func() error { return os.Link("evil", planted(s)) })
		}},
		{name: "rename a file of the workspace to the outside", escaped: appears(planted), inside: func(s *site) error {
			return made(func() error { return os.Rename("evil", planted(s)) })
		}},
		{name: "rename a file outside into the workspace", escaped: changedVictim, inside: func(s *site) error { return os.Rename(s.victim(), "stolen") }},
		{name: "exchange a file outside with one of the workspace", escaped: changedVictim, inside: func(s *site) error {
			return made(func() error {
				return unix.Renameat2(unix.AT_FDCWD, "evil", unix.AT_FDCWD, s.victim(), unix.RENAME_EXCHANGE)
			})
		}},
		{name: "delete a file outside", escaped: changedVictim, inside: func(s *site) error { return os.Remove(s.victim()) }},
		{name: "truncate a file outside by its path", escaped: changedVictim, inside: func(s *site) error { return os.Truncate(s.victim(), 0) }},
		{name: "make a directory outside", escaped: appears(planted), inside: func(s *site) error { return os.Mkdir(planted(s), 0o755) }},
		{name: "make a named pipe outside", escaped: appears(planted), inside: func(s *site) error { return unix.Mkfifo(planted(s), 0o600) }},
		{name: "replace a program that was approved", prepare: func(t testing.TB, s *site) { s.put(t, filepath.Join(s.Outside, "program"), "approved") },
			escaped: func(_ testing.TB, s *site, _ outcome) bool {
				return content(filepath.Join(s.Outside, "program")) != "approved"
			},
			inside: func(s *site) error {
				return made(func() error { return os.Rename("evil", filepath.Join(s.Outside, "program")) })
			}},
		{name: "write through a directory descriptor of the worker that is not closed on exec", escaped: changedLeaked, inside: throughDescriptors},
		{name: "write through the worker's working directory in /proc", escaped: changedLeaked, inside: func(s *site) error {
			return scribble(fmt.Sprintf("/proc/%d/cwd/victim.txt", s.Worker))
		}},
		{name: "write through the worker's root in /proc", escaped: changedVictim, inside: func(s *site) error {
			return scribble(fmt.Sprintf("/proc/%d/root%s", s.Worker, s.victim()))
		}},
		{name: "write through the worker's descriptors in /proc", escaped: changedLeaked, inside: func(s *site) error {
			return scribble(fmt.Sprintf("/proc/%d/fd/3/victim.txt", s.Worker))
		}},
		{name: "write through /proc/self/root", escaped: changedVictim, inside: func(s *site) error { return scribble("/proc/self/root" + s.victim()) }},
		{name: "write through /proc/1/root", escaped: changedVictim, by: rootOnly, inside: func(s *site) error { return scribble("/proc/1/root" + s.victim()) }},
		{name: "write through the root of the parent in /proc", escaped: changedVictim, inside: func(s *site) error {
			return scribble(fmt.Sprintf("/proc/%d/root%s", os.Getppid(), s.victim()))
		}},
	}, append(metadataAttempts(), otherAttempts()...)...)
}

// metadataAttempts change files outside without writing them.
func metadataAttempts() []attempt {
	return []attempt{
		{name: "change the mode of a file outside", inside: func(s *site) error { return os.Chmod(s.victim(), 0o777) },
			escaped: func(t testing.TB, s *site, _ outcome) bool { return stat(t, s.victim()).Mode().Perm() == 0o777 }},
		{name: "change the times of a file outside", inside: func(s *site) error { return os.Chtimes(s.victim(), longAgo, longAgo) },
			escaped: func(t testing.TB, s *site, _ outcome) bool { return stat(t, s.victim()).ModTime().Equal(longAgo) }},
		{name: "set an attribute of a file outside", inside: func(s *site) error { return unix.Setxattr(s.victim(), "user.escape", []byte("1"), 0) },
			escaped: func(_ testing.TB, s *site, _ outcome) bool {
				n, err := unix.Getxattr(s.victim(), "user.escape", nil)
				return err == nil && n > 0
			}},
		{name: "give away a file outside", by: rootOnly, inside: func(s *site) error { return os.Chown(s.victim(), nobody, nobody) },
			escaped: func(t testing.TB, s *site, _ outcome) bool {
				var st unix.Stat_t
				if err := unix.Stat(s.victim(), &st); err != nil {
					t.Fatal(err)
				}
				return st.Uid == nobody && s.role.uid != nobody
			}},
		{name: "set a flag of a file outside (chattr)", by: rootOnly, inside: func(s *site) error { return setFlags(s.victim(), noDump) },
			escaped: func(t testing.TB, s *site, _ outcome) bool { return flags(t, s.victim())&noDump != 0 }},
	}
}

var longAgo = time.Unix(1_000_000_000, 0)

// noDump is FS_NODUMP_FL: harmless.
const noDump = 0x40

// scribble overwrites a file that is there.
func scribble(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("escaped")
	return err
}

// made makes a file "evil" in the workspace and does something with it.
func made(do func() error) error {
	if err := os.WriteFile("evil", []byte("#!/bin/sh\necho evil\n"), 0o755); err != nil {
		return err
	}
	return do()
}

// throughDescriptors writes below whatever directory was inherited.
func throughDescriptors(*site) error {
	for fd := 3; fd < 1024; fd++ {
		f, err := unix.Openat(fd, "victim.txt", unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		_, err = unix.Write(f, []byte("escaped"))
		return err
	}
	return fmt.Errorf("no directory was inherited: %w", unix.EBADF)
}

func changedLeaked(_ testing.TB, s *site, _ outcome) bool {
	return content(filepath.Join(s.Leaked, "victim.txt")) != untouched
}

func stat(t testing.TB, path string) os.FileInfo {
	t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return fi
}

func setFlags(path string, flags uint32) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags))
}

func flags(t testing.TB, path string) uint32 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil && !strings.Contains(err.Error(), "inappropriate") {
		t.Fatal(err)
	}
	return n
}
