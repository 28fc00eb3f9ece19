package toolworker

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"correx/internal/workerhome"
	"correx/pkg/events"
	"correx/pkg/sandbox"
)

// A Pending is what one worker's journal holds.
type Pending struct {
	Worker  string          `json:"worker"`
	InUse   bool            `json:"in_use"` // its process is running; it looks after its journal itself
	Entries []sandbox.Entry `json:"entries"`
	// Leftover are directories of invocations, with the layers of their overlays. A
	// start removes them.
	Leftover []string `json:"leftover,omitempty"`
}

// ListPending reads the journals of the workers under a state directory, or of
// the one called name. root is where the configuration has the directories of
// invocations, if not with the worker's own. Nothing is rolled back or reported.
func ListPending(stateDir, root, name string, logger *slog.Logger) ([]Pending, error) {
	names := []string{name}
	if name == "" {
		var err error
		if names, err = workerhome.Names(stateDir, events.RoleToolWorker); err != nil {
			return nil, err
		}
	}
	var all []Pending
	for _, n := range names {
		p, err := pendingOf(stateDir, root, n, logger)
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

func pendingOf(stateDir, root, name string, logger *slog.Logger) (Pending, error) {
	if _, err := os.Stat(workerhome.Dir(stateDir, events.RoleToolWorker, name)); err != nil {
		return Pending{}, fmt.Errorf("no worker of this machine is called %s: %w", name, err)
	}
	h, err := workerhome.Open(stateDir, events.RoleToolWorker, name)
	if errors.Is(err, workerhome.ErrTaken) {
		return Pending{Worker: name, InUse: true}, nil
	}
	if err != nil {
		return Pending{}, err
	}
	defer h.Close()
	j, entries, err := sandbox.OpenJournal(h.Dir, sandbox.JournalOptions{Logger: logger})
	if err != nil {
		return Pending{}, err
	}
	left, err := sandbox.Leftovers(rootOf(root, h))
	return Pending{Worker: name, Entries: entries, Leftover: left}, errors.Join(err, j.Close())
}
