package sandbox

import (
	"fmt"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// recorder tells the journal of the changes of one entry. It may be called from
// several goroutines, about one path by one at a time.
type recorder struct {
	journal *Journal
	entry   *entry
	steps   *workspace.Steps
}

var _ workspace.Recorder = recorder{}

func (j *Journal) recorder(e *entry) recorder { return recorder{j, e, stepsOf(e.files)} }

func stepsOf(files []Change) *workspace.Steps {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path()
	}
	return workspace.NewSteps(paths)
}

func unannounced(path string) error {
	return fmt.Errorf("%s was not announced as affected, so it is not backed up and must not be changed", path)
}

func (r recorder) Staged(path string, before, after workspace.State) error {
	i, ok := r.steps.Next(path)
	if !ok {
		return unannounced(path)
	}
	if !before.Same(r.entry.files[i].Before) {
		return fmt.Errorf("%s %w, after it was backed up", path, workspace.ErrChanged)
	}
	r.steps.Stage(path)
	return r.journal.append(r.entry, record{Kind: stagedRecord, File: i, After: &after}, true)
}

func (r recorder) Applied(path string, after workspace.State) error {
	i, ok := r.steps.Staged(path)
	if !ok {
		return unannounced(path)
	}
	return r.journal.append(r.entry, record{Kind: appliedRecord, File: i, After: &after}, false)
}

func (r recorder) Temp(path string) string {
	if i, ok := r.steps.Next(path); ok {
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
		if !e.Unlisted {
			effects = events.EffectsRolledBack
		}
	}
	return effects
}
