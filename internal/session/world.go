package session

import (
	"maps"
	"slices"
	"sort"
	"time"

	"correx/pkg/events"
)

// A World is what all sessions share. It is folded from the facts of system;
// nothing else tells the kernel what tools, models and policy there are.
type World struct {
	Seq      uint64 // last record folded
	Settings events.Settings
	Workers  map[events.WorkerID]Worker
}

// A Worker is one process as its latest announcement describes it.
type Worker struct {
	events.WorkerStarted
	Seq     uint64
	Since   time.Time // stored time of the announcement
	Stopped bool
}

// An Offer is something that at least one worker offers.
type Offer[T any] struct {
	What    T
	Since   time.Time // the earliest announcement that still stands
	Workers []events.WorkerID
	Differs bool // two workers announced it with different digests: an alarm
}

// EvolveWorld folds one record of system; every other passes through.
func EvolveWorld(w World, r events.Record) World {
	if r.Aggregate.Session != events.System {
		return w
	}
	w.Seq = r.Seq
	switch f := r.Fact.(type) {
	case events.WorkerStarted:
		id := events.WorkerID(f.ID)
		w.Workers = maps.Clone(w.Workers)
		if w.Workers == nil {
			w.Workers = map[events.WorkerID]Worker{}
		}
		w.Workers[id] = Worker{WorkerStarted: f, Seq: r.Seq, Since: r.Time}
		if f.Role == events.RoleKernel && f.Settings != nil {
			w.Settings = *f.Settings
		}
	case events.WorkerStopped:
		id := events.WorkerID(f.ID)
		if old, ok := w.Workers[id]; ok && old.Boot == f.Boot {
			w.Workers = maps.Clone(w.Workers)
			old.Stopped = true
			w.Workers[id] = old
		}
	}
	return w
}

// Tool returns what is offered under a tool's raw name: the latest announcement
// that stands.
func (w World) Tool(name string) (Offer[events.ToolOffer], bool) {
	o, ok := w.tools()[name]
	return o, ok
}

// Tools returns all offers, ordered by name.
func (w World) Tools() []Offer[events.ToolOffer] {
	return ordered(w.tools())
}

// Models returns all offers, ordered by name.
func (w World) Models() []Offer[events.ModelOffer] { return ordered(w.models()) }

// Model picks a model: by name, else the best at a capability (General if that
// is empty), the first by name among equals.
func (w World) Model(name events.ModelID, c events.ModelCapability) (Offer[events.ModelOffer], bool) {
	all := w.models()
	if name != "" {
		o, ok := all[string(name)]
		return o, ok
	}
	if c == "" {
		c = events.General
	}
	best, score := Offer[events.ModelOffer]{}, -1.0
	for _, o := range ordered(all) {
		s := 0.0
		for _, k := range o.What.Capabilities {
			if k.Capability == c {
				s = k.Score
			}
		}
		if s > score {
			best, score = o, s
		}
	}
	return best, score >= 0
}

func (w World) tools() map[string]Offer[events.ToolOffer] {
	return offers(w, func(s Worker) []events.ToolOffer { return s.Tools },
		func(t events.ToolOffer) (string, string) { return t.Name, t.Digest })
}

func (w World) models() map[string]Offer[events.ModelOffer] {
	return offers(w, func(s Worker) []events.ModelOffer { return s.Models },
		func(m events.ModelOffer) (string, string) { return string(m.Name), m.Token })
}

// offers merges what the workers that have not stopped announce, in the order of
// their announcements.
func offers[T any](w World, of func(Worker) []T, key func(T) (name, digest string)) map[string]Offer[T] {
	workers := slices.Collect(maps.Values(w.Workers))
	sort.Slice(workers, func(i, j int) bool { return workers[i].Seq < workers[j].Seq })
	all := map[string]Offer[T]{}
	for _, s := range workers {
		if s.Stopped {
			continue
		}
		for _, t := range of(s) {
			name, digest := key(t)
			o, known := all[name]
			if !known {
				o.Since = s.Since
			} else if _, d := key(o.What); d != digest {
				o.Differs = true
			}
			o.What = t
			o.Workers = append(o.Workers, events.WorkerID(s.ID))
			all[name] = o
		}
	}
	return all
}

func ordered[T any](m map[string]Offer[T]) []Offer[T] {
	out := make([]Offer[T], 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}
