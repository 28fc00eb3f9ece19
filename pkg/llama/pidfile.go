package llama

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A pidRecord names a process so that no other one can be taken for it.
type pidRecord struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start_ticks"` // since the boot
	Boot  string `json:"boot_id"`
	Model string `json:"model"`
}

// writePID records a child that was just started. The file is replaced whole.
func writePID(path string, pid int, model string) error {
	start, err := startTime(pid)
	if err != nil {
		return nil // it is dead already, and whoever waits for it will say so
	}
	data, err := json.Marshal(pidRecord{pid, start, bootID(), model})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// parsePID reads a record of this boot.
func parsePID(data []byte) (rec pidRecord, ok bool) {
	ok = json.Unmarshal(data, &rec) == nil && rec.PID > 1 && rec.Boot == bootID()
	return rec, ok
}

// reapTimeout is how long a killed process may take to vanish.
const reapTimeout = 10 * time.Second

// Reap kills the llama-server that a former worker left behind, if the pid file
// names one and it still runs, waits until it is dead, and removes the file. It
// returns the pid that it killed, or 0. A process that merely has the number of
// the one in the file is left alone.
func Reap(path string) (killed int, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read pid file: %w", err)
	}
	if rec, ok := parsePID(data); ok {
		if killed, err = rec.kill(); err != nil {
			return killed, err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return killed, fmt.Errorf("remove pid file: %w", err)
	}
	return killed, nil
}

// kill ends the recorded process and its group. The descriptor is taken before
// the start time is compared, so that the process which is compared is the one
// which is killed.
func (r pidRecord) kill() (killed int, err error) {
	fd, err := unix.PidfdOpen(r.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open process %d of the pid file: %w", r.PID, err)
	}
	defer unix.Close(fd)
	if start, err := startTime(r.PID); err != nil || start != r.Start {
		return 0, nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return 0, fmt.Errorf("kill left-over llama-server %d: %w", r.PID, err)
	}
	_ = unix.Kill(-r.PID, unix.SIGKILL) // its children, if it ever had any
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for deadline := time.Now().Add(reapTimeout); ; {
		n, err := unix.Poll(ready, int(max(0, time.Until(deadline).Milliseconds())))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return r.PID, fmt.Errorf("wait for left-over llama-server %d: %w", r.PID, err)
		case n == 0:
			return r.PID, fmt.Errorf("left-over llama-server %d does not die; stop it by hand", r.PID)
		}
		return r.PID, nil
	}
}
