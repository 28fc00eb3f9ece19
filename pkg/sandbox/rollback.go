package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

const (
	// inlineBackup is how large a file may be whose backup stands in the journal
	// itself, which costs no file and no further sync, and inlineBackups how much
	// all of one invocation.
	inlineBackup  = 64 << 10
	inlineBackups = 4 << 20
	// backupsAtOnce share the disk's syncs.
	backupsAtOnce = 16
	// keptDir has the backups that a rollback could not use.
	keptDir = "kept"
)

// Rollback makes the files of an invocation what they were, where they still are
// what it left. It returns those that it restored, and those that it left alone
// because somebody else had changed them; of these the backup is kept, and named.
// Files that needed nothing are not listed. A second call returns the same.
func (j *Journal) Rollback(key Key) ([]events.RecoveredFile, error) {
	e := j.find(key)
	if e == nil {
		return nil, nil
	}
	if e.settled || len(e.files) == 0 {
		return e.Files, nil
	}
	if !e.rolled {
		if err := j.append(e, record{Kind: rollingRecord}, true); err != nil {
			return nil, fmt.Errorf("roll back %s: %w", key, err)
		}
	}
	var files recovered
	var faults []error
	steps := stepsOf(e.files)
	for i := len(e.files) - 1; i >= 0; i-- {
		f, err := j.restore(e, i, steps.First(e.files[i].Path()))
		if err != nil {
			faults = append(faults, err)
		}
		files.add(f)
	}
	if err := errors.Join(faults...); err != nil {
		return files, fmt.Errorf("roll back %s: %w", key, err)
	}
	if err := j.append(e, record{Kind: rolledRecord, Outcome: files}, true); err != nil {
		return files, fmt.Errorf("roll back %s: %w", key, err)
	}
	return files, nil
}

// recovered are the files of a rollback; one has several steps, which count as one.
type recovered []events.RecoveredFile

func (r *recovered) add(f events.RecoveredFile) {
	if f.Effects == events.EffectsNone {
		return
	}
	for i, have := range *r {
		if have.Path != f.Path {
			continue
		}
		if badness(f.Effects) > badness(have.Effects) {
			(*r)[i].Effects = f.Effects
		}
		if f.Backup != "" {
			(*r)[i].Backup = f.Backup
		}
		return
	}
	*r = append(*r, f)
}

func badness(e events.Effects) int {
	return slices.Index([]events.Effects{events.EffectsRolledBack, events.EffectsConflict, events.EffectsUnknown}, e)
}

// restore takes step i back. first is the first step of its path.
func (j *Journal) restore(e *entry, i, first int) (events.RecoveredFile, error) {
	c := e.files[i]
	out := events.RecoveredFile{Path: c.Path(), Effects: events.EffectsNone}
	outcome, err := c.Restore(func() ([]byte, error) { return j.backupOf(e, i) })
	if outcome == workspace.Conflict && err == nil && first < i && e.files[first].IsBack() {
		return out, nil // a rollback that was cut short had come further
	}
	switch {
	case err != nil:
		out.Effects = events.EffectsUnknown
		return out, err
	case outcome == workspace.Restored:
		out.Effects = events.EffectsRolledBack
	case outcome == workspace.Conflict:
		out.Effects = events.EffectsConflict
		if c.Before.Exists && !c.Before.Dir && c.Before.Link == "" {
			out.Backup, err = j.keep(e, i)
		}
	}
	return out, err
}

// backUp writes the large backups of e to files of their own.
func (j *Journal) backUp(e *entry) error {
	dir := j.backupDir(e)
	made, inline := false, 0
	var g errgroup.Group
	g.SetLimit(backupsAtOnce)
	for i := range e.files {
		c := &e.files[i]
		if n := len(c.Data); n <= inlineBackup && inline+n <= inlineBackups {
			inline += n
			continue
		}
		if !made {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return fmt.Errorf("back up %s: %w", c.Path(), err)
			}
			made = true
		}
		c.Backup = strconv.Itoa(i)
		g.Go(func() error {
			if err := workspace.WriteSynced(filepath.Join(dir, c.Backup), c.Data); err != nil {
				return fmt.Errorf("back up %s: %w", c.Path(), err)
			}
			c.Data = nil
			return nil
		})
	}
	if err := g.Wait(); err != nil || !made {
		return err
	}
	return errors.Join(workspace.SyncDir(dir), workspace.SyncDir(j.backups))
}

func (j *Journal) backupDir(e *entry) string { return filepath.Join(j.backups, e.Key.name()) }

// backupOf returns what was in a file, and makes sure that it is that.
func (j *Journal) backupOf(e *entry, i int) ([]byte, error) {
	c := e.files[i]
	data := c.Data
	if c.Backup != "" {
		var err error
		if data, err = os.ReadFile(filepath.Join(j.backupDir(e), c.Backup)); err != nil {
			return nil, err
		}
	}
	if sum := workspace.Hash(data); sum != c.Before.SHA256 {
		return nil, fmt.Errorf("backup of %s has SHA-256 %s, and the file had %s", c.Path(), sum, c.Before.SHA256)
	}
	return data, nil
}

// keep puts a backup where it stays.
func (j *Journal) keep(e *entry, i int) (string, error) {
	data, err := j.backupOf(e, i)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(j.backups, keptDir, e.Key.name())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(dir, strconv.Itoa(i)+"-"+filepath.Base(e.files[i].Rel))
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err // of a rollback that was cut short
	}
	if err := workspace.WriteSynced(name, data); err != nil {
		return "", fmt.Errorf("keep backup: %w", err)
	}
	return name, errors.Join(workspace.SyncDir(dir), workspace.SyncDir(filepath.Dir(dir)))
}

func (j *Journal) dropBackups(e *entry) {
	for _, c := range e.files {
		if c.Backup != "" {
			if err := os.RemoveAll(j.backupDir(e)); err != nil {
				j.logger.Warn("remove backups", "dir", j.backupDir(e), "err", err)
			}
			return
		}
	}
}

// sweepBackups removes backups that belong to no entry.
func (j *Journal) sweepBackups() error {
	wanted := map[string]bool{keptDir: true}
	for _, e := range j.entries {
		wanted[e.Key.name()] = true
	}
	names, err := os.ReadDir(j.backups)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !wanted[n.Name()] {
			if err := os.RemoveAll(filepath.Join(j.backups, n.Name())); err != nil {
				return fmt.Errorf("remove left-over backup: %w", err)
			}
		}
	}
	return nil
}
