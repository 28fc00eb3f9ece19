package sandbox

import (
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

const errReadOnly = unix.EROFS

// holds counts the commands that need an empty directory to be somewhere.
var holds = struct {
	sync.Mutex
	count map[string]int
	file  string // that remembers them over a crash; empty: nothing does
}{count: map[string]int{}}

// hold makes an empty directory, if no other command needs it already.
func hold(path string) error {
	holds.Lock()
	defer holds.Unlock()
	if holds.count[path] == 0 {
		if err := remember(path); err != nil {
			return err
		}
		if err := inParent(path, func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o555) }); err != nil {
			return err
		}
	}
	holds.count[path]++
	return nil
}

// release removes the directories that no other command needs. What somebody put
// something into stays.
func release(paths []string) {
	holds.Lock()
	defer holds.Unlock()
	for _, path := range paths {
		if holds.count[path]--; holds.count[path] == 0 {
			delete(holds.count, path)
			removeHeld(path)
		}
	}
	if len(holds.count) == 0 {
		forgetAll()
	}
}

func removeHeld(path string) {
	_ = inParent(path, func(dir int, name string) error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

// inParent opens the directory of path through no symbolic link.
func inParent(path string, f func(dir int, name string) error) error {
	dir, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(path), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return f(dir, filepath.Base(path))
}
