package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"correx/pkg/tools/workspace"
)

// append writes a record of e and, if durable, waits until it is on disk.
func (j *Journal) append(e *entry, r record, durable bool) error {
	r.ID = e.id
	j.fault(string(r.Kind))
	n, err := j.write(e, r)
	if err != nil {
		return err
	}
	if !durable {
		j.fault(string(r.Kind) + ".written")
		return nil
	}
	if err := j.wait(n); err != nil {
		return err
	}
	j.fault(string(r.Kind) + ".durable")
	return nil
}

// write puts a record at the end of the file and returns its number.
func (j *Journal) write(e *entry, r record) (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return 0, j.broken
	}
	frame, err := encodeFrame(r, j.onDisk)
	if err != nil {
		return 0, err
	}
	if _, err := j.file.WriteAt(frame, j.size); err != nil {
		if cut := j.file.Truncate(j.size); cut != nil {
			j.broken = fmt.Errorf("the journal cannot be written: %w", err)
		}
		return 0, fmt.Errorf("write journal: %w", err)
	}
	j.size += int64(len(frame))
	j.count++
	switch r.Kind {
	case beginRecord:
		e.frames = append(e.frames, r)
	case clearRecord:
	default:
		if err := e.apply(r); err != nil {
			return 0, err
		}
	}
	return j.count, nil
}

// wait returns when the record of that number is on disk. One of those who wait
// syncs for all.
func (j *Journal) wait(n uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.durable < n {
		if j.broken != nil {
			return j.broken
		}
		if j.syncing {
			j.synced.Wait()
			continue
		}
		j.sync()
	}
	return nil
}

// sync makes all that is written durable. The lock is held before and after, and
// free while the disk works.
func (j *Journal) sync() {
	file, size, count := j.file, j.size, j.count
	j.syncing = true
	j.mu.Unlock()
	err := unix.Fdatasync(int(file.Fd()))
	j.mu.Lock()
	j.syncing = false
	if err != nil { // what the kernel dropped then cannot be synced again
		j.broken = fmt.Errorf("the journal cannot be synced: %w", err)
	} else {
		j.durable, j.onDisk = count, size
	}
	j.synced.Broadcast()
}

// compact makes the file small again.
func (j *Journal) compact(idle bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.syncing {
		j.synced.Wait()
	}
	if j.broken != nil || j.size <= compactAt {
		return j.broken
	}
	if err := j.rewrite(); err != nil {
		j.broken = fmt.Errorf("the journal cannot be written anew: %w", err)
		return j.broken
	}
	j.synced.Broadcast()
	return nil
}

// rewrite replaces the file by one that has the live entries only. All is
// durable afterwards.
func (j *Journal) rewrite() error {
	next := j.path() + ".new"
	f, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	text := []byte(magic)
	for _, e := range j.entries {
		for _, r := range e.frames {
			frame, err := encodeFrame(r, 0)
			if err != nil {
				f.Close()
				return err
			}
			text = append(text, frame...)
		}
	}
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(next, j.path())
	}
	if err == nil {
		err = workspace.SyncDir(j.dir)
	}
	if err != nil {
		f.Close()
		return err
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.size, j.onDisk, j.durable = f, int64(len(text)), int64(len(text)), j.count
	return nil
}
