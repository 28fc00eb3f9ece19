// Package workerhome gives each worker of a machine a name and a directory of its
// own, which it finds again when it comes back.
package workerhome

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
)

// A Home is the directory of one worker, held by its lock.
type Home struct {
	Name string
	Dir  string
	lock *os.File
}

// maxNames is how many workers of a role without a name of their own fit on one
// machine.
const maxNames = 1000

// ErrTaken is returned when another process has the name.
var ErrTaken = errors.New("another process runs under this name")

// Open takes the directory of the worker called name, or the first free one of
// <role>-1, <role>-2, … if name is empty. The caller closes it; the end of the
// process does, too.
func Open(stateDir string, role events.WorkerRole, name string) (*Home, error) {
	if name != "" {
		if err := events.CheckToken(name); err != nil {
			return nil, fmt.Errorf("worker name %w", err)
		}
		return lock(stateDir, role, name)
	}
	for n := 1; n <= maxNames; n++ {
		h, err := lock(stateDir, role, string(role)+"-"+strconv.Itoa(n))
		if !errors.Is(err, ErrTaken) {
			return h, err
		}
	}
	return nil, fmt.Errorf("take a worker name: %s-1 to %s-%d are all in use", role, role, maxNames)
}

func lock(stateDir string, role events.WorkerRole, name string) (*Home, error) {
	dir := Dir(stateDir, role, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make worker directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock worker directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("take worker name %s: %w", name, ErrTaken)
		}
		return nil, fmt.Errorf("lock worker directory %s: %w", dir, err)
	}
	return &Home{Name: name, Dir: dir, lock: f}, nil
}

// Close lets the name go.
func (h *Home) Close() error { return h.lock.Close() }

// Worker is the id of the worker: unique across machines as long as their host
// names are, and the same after a restart.
func (h *Home) Worker(host string) events.WorkerID {
	return events.WorkerID(events.Token(host + "-" + h.Name))
}

// Dir is where the worker called name lives. Open makes it.
func Dir(stateDir string, role events.WorkerRole, name string) string {
	return filepath.Join(stateDir, string(role), name)
}

// Names returns the names of the workers of a role that ever lived here.
func Names(stateDir string, role events.WorkerRole) ([]string, error) {
	dirs, err := os.ReadDir(Dir(stateDir, role, ""))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	var names []string
	for _, d := range dirs {
		if d.IsDir() {
			names = append(names, d.Name())
		}
	}
	return names, nil
}
