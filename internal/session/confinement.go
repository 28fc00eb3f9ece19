package session

import (
	"fmt"
	"slices"

	"correx/pkg/events"
)

// Isolation is the weakest by which a worker that offers the tool confines it,
// as announced; empty if none says.
func (w World) Isolation(tool string) events.Isolation {
	weakest := events.Isolation("")
	for _, s := range w.Workers {
		if s.Stopped {
			continue
		}
		for _, t := range ToolsOf(s.WorkerStarted) {
			if t.Name == tool && t.Isolation != "" && (weakest == "" || t.Isolation.Rank() < weakest.Rank()) {
				weakest = t.Isolation
			}
		}
	}
	return weakest
}

// confinement says, for a person, how what starts processes or is of tier T3 will
// be confined. The worker holds it against what is configured; nobody's approval
// changes that.
func (r *reactor) confinement(o events.ToolOffer, tier events.Tier) []string {
	spawns := slices.Contains(o.Capabilities, events.ShellExec) || slices.Contains(o.Capabilities, events.ProcessSpawn)
	if tier < events.T3 && !spawns {
		return nil
	}
	switch i := r.w.Isolation(o.Name); i {
	case "":
		return nil
	case events.IsolationNone:
		return []string{"isolation none: nothing confines it but a time limit"}
	default:
		return []string{fmt.Sprintf("isolation %s", i)}
	}
}
