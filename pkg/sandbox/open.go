package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

func (j *Journal) open() error {
	for _, d := range []string{j.dir, j.backups, filepath.Join(j.backups, keptDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if err := j.takeLock(); err != nil {
		return err
	}
	data, err := os.ReadFile(j.path())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	sound, err := scan(data, j.replay)
	if err != nil {
		return fmt.Errorf("read %s: %w; move it away to go on without what it remembers", j.path(), err)
	}
	if torn := int64(len(data)) - sound; torn > 0 {
		j.logger.Warn("cut a torn record off the journal", "file", j.path(), "bytes", torn)
	}
	if err := j.rewrite(); err != nil {
		return err
	}
	return j.sweepBackups()
}

func (j *Journal) path() string { return filepath.Join(j.dir, "log") }

func (j *Journal) takeLock() error {
	f, err := os.OpenFile(filepath.Join(j.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return fmt.Errorf("another process uses it: %w", err)
	}
	j.lock = f
	return nil
}

// replay takes one record of a former process.
func (j *Journal) replay(r record) error {
	j.nextID = max(j.nextID, r.ID+1)
	if r.Kind == beginRecord {
		if r.Key == nil {
			return errors.New("begin without a key")
		}
		j.entries[*r.Key] = &entry{
			Entry: Entry{Key: *r.Key, Tool: r.Tool, State: Running, Unlisted: r.Unlisted},
			id:    r.ID, files: r.Files, frames: []record{r},
		}
		return nil
	}
	for key, e := range j.entries {
		if e.id == r.ID {
			if r.Kind == clearRecord {
				delete(j.entries, key)
				return nil
			}
			return e.apply(r)
		}
	}
	return fmt.Errorf("%s of an entry that never began", r.Kind)
}

// apply takes the entry one record further.
func (e *entry) apply(r record) error {
	switch r.Kind {
	case stagedRecord, appliedRecord:
		if r.File < 0 || r.File >= len(e.files) || r.After == nil {
			return fmt.Errorf("%s of file %d, and there are %d", r.Kind, r.File, len(e.files))
		}
		if r.Kind == stagedRecord {
			e.files[r.File].Staged, e.files[r.File].Applied = r.After, nil
		} else {
			e.files[r.File].Applied = r.After
		}
	case announcedRecord:
		e.files = r.Files
	case resultRecord:
		e.State, e.Result = Result, r.Result
	case rollingRecord:
		e.rolled = true
		if e.State == Running {
			e.State = Rolling
		}
	case rolledRecord:
		e.settled, e.Files = true, r.Outcome
	default:
		return fmt.Errorf("kind %q is unknown", r.Kind)
	}
	e.frames = append(e.frames, r)
	return nil
}

func (j *Journal) pending() []Entry {
	var all []*entry
	for _, e := range j.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return int(a.id) - int(b.id) })
	out := make([]Entry, len(all))
	for i, e := range all {
		out[i] = e.Entry
		out[i].Steps = e.steps()
	}
	return out
}
