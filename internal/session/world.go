package session

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"correx/pkg/events"
)

// A World is what all sessions share. It is folded from the facts of system,
// which alone tell the kernel what tools, models and policy there are, and from
// those of all inferences, which tell what waits for each model.
type World struct {
	Seq      uint64 // last record folded
	Settings events.Settings
	Workers  map[events.WorkerID]Worker
	States   map[string]events.ModelState // by [events.ModelAggregateID]; not there: not loaded
	Queue    map[string]int               // inferences that have not ended, by the model's token

	open map[events.Aggregate]Inference // those of Queue
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

// EvolveWorld folds one record of system or of an inference; every other passes
// through.
func EvolveWorld(w World, r events.Record) World {
	if r.Aggregate.Kind == events.KindInference {
		w = w.inference(r)
	}
	if r.Aggregate.Session != events.System {
		return w
	}
	w.Seq = r.Seq
	switch f := r.Fact.(type) {
	case events.WorkerStarted:
		id := events.WorkerID(f.ID)
		w = w.forget(id)
		w.Workers = with(w.Workers, id, Worker{WorkerStarted: f, Seq: r.Seq, Since: r.Time})
		if settings := SettingsOf(f); settings != nil {
			w.Settings = *settings
		}
	case events.WorkerStopped:
		id := events.WorkerID(f.ID)
		if old, ok := w.Workers[id]; ok && old.Boot == f.Boot {
			w = w.forget(id)
			old.Stopped = true
			w.Workers = with(w.Workers, id, old)
		}
	default:
		if r.Aggregate.Kind == events.KindModel {
			w = w.model(r)
		}
	}
	return w
}

// Presumes returns what an announcement claims that its writer has no right to,
// each an alarm, and none of it believed: the kernel's role and settings under
// another name, tools of anybody but a tool-worker, models of anybody but a
// model-worker. The server keeps the kernels' names to kernels; who may offer
// what, it cannot tell.
func Presumes(r events.Record) []string {
	f, ok := r.Fact.(events.WorkerStarted)
	if !ok || r.Aggregate.Session != events.System {
		return nil
	}
	var all []string
	say := func(format string, args ...any) {
		all = append(all, fmt.Sprintf("worker %s of role %s ", f.ID, f.Role)+fmt.Sprintf(format, args...))
	}
	if f.Role == events.RoleKernel && !events.WorkerID(f.ID).IsKernel() {
		say("has no kernel's name")
	}
	if f.Settings != nil && SettingsOf(f) == nil {
		say("announces settings")
	}
	if len(f.Tools) > 0 && ToolsOf(f) == nil {
		say("offers tools")
	}
	if len(f.Models) > 0 && ModelsOf(f) == nil {
		say("offers models")
	}
	return all
}

// SettingsOf returns the settings that f announces: nil unless f is a kernel's.
func SettingsOf(f events.WorkerStarted) *events.Settings {
	if f.Role != events.RoleKernel || !events.WorkerID(f.ID).IsKernel() {
		return nil
	}
	return f.Settings
}

// ToolsOf returns the tools that f offers: none unless f is a tool-worker's.
func ToolsOf(f events.WorkerStarted) []events.ToolOffer {
	if f.Role != events.RoleToolWorker {
		return nil
	}
	return f.Tools
}

// ModelsOf returns the models that f offers: none unless f is a model-worker's.
func ModelsOf(f events.WorkerStarted) []events.ModelOffer {
	if f.Role != events.RoleModelWorker {
		return nil
	}
	return f.Models
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

// Model returns what is offered under a model's name.
func (w World) Model(name events.ModelID) (Offer[events.ModelOffer], bool) {
	o, ok := w.models()[string(name)]
	return o, ok
}

func (w World) tools() map[string]Offer[events.ToolOffer] {
	return offers(w, ToolsOf,
		func(t events.ToolOffer) (string, string) { return t.Name, t.Digest })
}

func (w World) models() map[string]Offer[events.ModelOffer] {
	return offers(w, ModelsOf,
		func(m events.ModelOffer) (string, string) { return string(m.Name), m.Token })
}

// offers merges what the workers that have not stopped announce, in the order of
// their announcements.
func offers[T any](w World, of func(events.WorkerStarted) []T, key func(T) (name, digest string)) map[string]Offer[T] {
	workers := slices.Collect(maps.Values(w.Workers))
	sort.Slice(workers, func(i, j int) bool { return workers[i].Seq < workers[j].Seq })
	all := map[string]Offer[T]{}
	for _, s := range workers {
		if s.Stopped {
			continue
		}
		for _, t := range of(s.WorkerStarted) {
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
