package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// remember notes a directory before it is made, so that it goes away even if
// this process dies first.
func remember(path string) error {
	if holds.file == "" {
		return nil
	}
	f, err := os.OpenFile(holds.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(path + "\x00")
	return errors.Join(err, f.Close())
}

func forgetAll() {
	if holds.file != "" {
		_ = os.Truncate(holds.file, 0) // else the next start tries to remove what is gone
	}
}

// sweepHolds removes what a former process left, and notes in file from now on.
// A file is one process's at a time.
func sweepHolds(file string) error {
	holds.Lock()
	defer holds.Unlock()
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for path := range strings.SplitSeq(string(data), "\x00") {
		if path != "" && holds.count[path] == 0 {
			removeHeld(path)
		}
	}
	holds.file = file
	forgetAll()
	return nil
}
