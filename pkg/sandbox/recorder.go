package sandbox

import (
	"fmt"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// recorder tells the journal of the changes of one entry.
type recorder struct {
	journal *Journal
	entry   *entry
}

var _ workspace.Recorder = recorder{}

func (r recorder) index(path string) (int, error) {
	for i, f := range r.entry.files {
		if f.Path() == path {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s was not announced as affected, so it is not backed up and must not be changed", path)
}

func (r recorder) Staged(path string, before, after workspace.State) error {
	i, err := r.index(path)
	if err != nil {
		return err
	}
	if !before.Same(r.entry.files[i].Before) {
		return fmt.Errorf("%s %w, after it was backed up", path, workspace.ErrChanged)
	}
	return r.journal.append(r.entry, record{Kind: stagedRecord, File: i, After: &after}, true)
}

func (r recorder) Applied(path string, after workspace.State) error {
	i, err := r.index(path)
	if err != nil {
		return err
	}
	return r.journal.append(r.entry, record{Kind: appliedRecord, File: i, After: &after}, false)
}

func (r recorder) Temp(path string) string {
	if i, err := r.index(path); err == nil {
		return r.entry.files[i].Temp
	}
	return workspace.TempName()
}

// EffectsOf sums up what a rollback came to.
func EffectsOf(e Entry, files []events.RecoveredFile) events.Effects {
	effects := events.EffectsNone
	if e.Unlisted {
		effects = events.EffectsUnknown
	}
	for _, f := range files {
		if f.Effects == events.EffectsConflict {
			return events.EffectsConflict
		}
		effects = events.EffectsRolledBack
	}
	return effects
}
