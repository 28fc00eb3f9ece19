package modelworker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
)

// A Home is the directory of one worker, held by its lock. It holds the pid file
// of the worker's llama-server.
type Home struct {
	Name string
	Dir  string
	lock *os.File
}

// maxNames is how many workers without a name of their own fit on one machine.
const maxNames = 100

// ErrTaken is returned when another process has the name.
var ErrTaken = errors.New("another process runs under this name")

// OpenHome takes the directory of the worker called name, or the first free one
// of model-worker-1, model-worker-2, … if name is empty. A worker that comes back
// under its name ends the llama-server that it may have left.
func OpenHome(stateDir, name string) (*Home, error) {
	if name != "" {
		if err := events.CheckToken(name); err != nil {
			return nil, fmt.Errorf("worker name %w", err)
		}
		return lockHome(stateDir, name)
	}
	for n := 1; n <= maxNames; n++ {
		h, err := lockHome(stateDir, "model-worker-"+strconv.Itoa(n))
		if !errors.Is(err, ErrTaken) {
			return h, err
		}
	}
	return nil, fmt.Errorf("take a worker name: model-worker-1 to model-worker-%d are all in use", maxNames)
}

func lockHome(stateDir, name string) (*Home, error) {
	dir := filepath.Join(stateDir, "model-worker", name)
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
