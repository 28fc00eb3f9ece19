package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// secretAttempts read what no tool is to know. Each prints what it read; the
// secret that it is held against is told to the worker alone.
func secretAttempts() []attempt {
	list := []attempt{
		{name: "read the keys in the worker's directory", escaped: readsSecret, inside: func(s *site) error { return show(filepath.Join(s.State, "keys/tool-worker.nk")) }},
		{name: "read the journal", escaped: readsSecret, inside: func(s *site) error { return show(filepath.Join(s.State, "journal/journal")) }},
		{name: "read a backup of another session's file", escaped: readsSecret, inside: func(s *site) error { return show(filepath.Join(s.State, "backups/s2-t2")) }},
		{name: "read the directory of another session", escaped: readsSecret, inside: func(s *site) error { return show(filepath.Join(s.State, "sandbox/s2/t2/notes.txt")) }},
		{name: "read the directory of another session through `..` of its own", escaped: readsSecret, inside: func(s *site) error { return show(s.Own + "/../../s2/t2/notes.txt") }},
		{name: "read a key through a symbolic link made inside", escaped: readsSecret, inside: func(s *site) error {
			if err := os.Symlink(filepath.Join(s.Home, secretFiles[0]), "key"); err != nil {
				return err
			}
			return show("key")
		}},
		{name: "hard-link a key into the workspace and read it", escaped: readsSecret, inside: func(s *site) error {
			if err := os.Link(filepath.Join(s.Home, secretFiles[0]), "key"); err != nil {
				return err
			}
			return show("key")
		}},
		{name: "unmount what hides a key", escaped: readsSecret, inside: func(s *site) error {
			for _, dir := range []string{s.Home, filepath.Dir(filepath.Join(s.Home, secretFiles[0])), s.State} {
				_ = unix.Unmount(dir, unix.MNT_DETACH) // nothing may be mounted there
			}
			return show(filepath.Join(s.Home, secretFiles[0]))
		}},
		{name: "read a key through the worker's root in /proc", escaped: readsSecret, inside: func(s *site) error {
			return show(fmt.Sprintf("/proc/%d/root%s", s.Worker, filepath.Join(s.Home, secretFiles[0])))
		}},
		{name: "read the worker's environment", escaped: readsSecret, script: "env"},
		{name: "read the worker's environment in /proc", escaped: readsSecret, inside: func(s *site) error {
			return show(fmt.Sprintf("/proc/%d/environ", s.Worker))
		}},
		{name: "read the environment of every process in /proc", escaped: readsSecret, script: "cat /proc/[0-9]*/environ 2>/dev/null"},
		{name: "read the worker's memory in /proc", escaped: readsSecret, mayRefuse: "the kernel may forbid it (Yama)", inside: readMemory},
		{name: "read /etc/shadow", by: rootOnly, inside: func(*site) error { return readable("/etc/shadow") }},
		{name: "see the processes of the machine", inside: func(s *site) error { return readable(fmt.Sprintf("/proc/%d/cmdline", s.Worker)) }},
	}
	for _, name := range secretFiles {
		list = append(list, attempt{name: "read ~/" + name, escaped: readsSecret, inside: func(s *site) error { return show(filepath.Join(s.Home, name)) }})
	}
	return list
}

// readable tells whether a file can be read, and does not show it.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := f.Read(make([]byte, 64))
	if n == 0 && err == nil {
		return fmt.Errorf("%s is empty", path)
	}
	return err
}

func readMemory(s *site) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", s.Worker))
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, s.Length)
	if _, err := f.ReadAt(b, int64(s.Address)); err != nil {
		return err
	}
	fmt.Printf("%s\n", b)
	return nil
}

// environmentAttempts have a program run what stands in the workspace, by
// variables that the worker happens to have.
func environmentAttempts() []attempt {
	evil := func(t testing.TB, s *site) {
		s.put(t, filepath.Join(s.Work, "evil.sh"), "#!/bin/sh\ntouch ran\n")
		if err := os.Chmod(filepath.Join(s.Work, "evil.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ran := appears(func(s *site) string { return filepath.Join(s.Work, "ran") })
	return []attempt{
		{name: "have bash run a file of the workspace by the worker's BASH_ENV", prepare: evil, escaped: ran, script: "exec bash -c true"},
		{name: "have git run a file of the workspace by the worker's GIT_CONFIG_*", prepare: func(t testing.TB, s *site) { evil(t, s); repository(t, s) }, escaped: ran,
			script: "cd \"$WORK\" && git status"},
		{name: "have a program load a library of the workspace by the worker's LD_PRELOAD", escaped: func(_ testing.TB, _ *site, o outcome) bool {
			return o.printed("evil.so")
		}, script: "exec /bin/true"},
	}
}
