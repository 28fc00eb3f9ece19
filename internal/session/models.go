package session

import (
	"maps"

	"correx/pkg/events"
)

// State is where the model of an offer stands: the best of its workers.
func (w World) State(o Offer[events.ModelOffer]) events.ModelState {
	best := events.ModelIsBroken
	for _, id := range o.Workers {
		s := events.ModelIsUnloaded
		if known, ok := w.States[events.ModelAggregateID(id, o.What.Token)]; ok {
			s = known
		}
		if rank(s) < rank(best) {
			best = s
		}
	}
	return best
}

// slots is how many inferences of a model are answered at one time.
func (w World) slots(o Offer[events.ModelOffer]) int {
	n := 0
	for _, id := range o.Workers {
		for _, m := range ModelsOf(w.Workers[id].WorkerStarted) {
			if m.Name == o.What.Name {
				n += max(1, m.Slots)
			}
		}
	}
	return n
}

// model folds what became of a model on one worker. Only what the worker offers
// counts, and only in the aggregate that is its own.
func (w World) model(r events.Record) World {
	id, state := modelState(r.Fact)
	worker, known := w.Workers[id]
	if !known || worker.Stopped {
		return w
	}
	for _, m := range ModelsOf(worker.WorkerStarted) {
		if events.ModelAggregateID(id, m.Token) == r.Aggregate.ID {
			w.States = with(w.States, r.Aggregate.ID, state)
			return w
		}
	}
	return w
}

// modelState is what a fact says of a model; the worker is empty if it says
// nothing.
func modelState(f events.Fact) (events.WorkerID, events.ModelState) {
	switch f := f.(type) {
	case events.ModelLoadRequested:
		return f.Worker, events.ModelIsWanted
	case events.ModelLoaded:
		return f.Worker, events.ModelIsLoaded
	case events.ModelUnloaded:
		return f.Worker, events.ModelIsUnloaded
	case events.ModelCrashed:
		return f.Worker, events.ModelIsBroken
	case events.ModelLoadFailed:
		return f.Worker, events.ModelIsBroken
	}
	return "", ""
}

// forget drops the states of a worker's models: no llama-server outlives its
// worker.
func (w World) forget(id events.WorkerID) World {
	old := ModelsOf(w.Workers[id].WorkerStarted)
	if len(old) == 0 || len(w.States) == 0 {
		return w
	}
	w.States = maps.Clone(w.States)
	for _, m := range old {
		delete(w.States, events.ModelAggregateID(id, m.Token))
	}
	return w
}

// inference counts what is asked of each model and has not ended, whatever
// session asks. What ended is not remembered.
func (w World) inference(r events.Record) World {
	was, known := w.open[r.Aggregate]
	if _, asked := r.Fact.(events.InferenceRequested); !known && !asked {
		return w // an end of what is not open
	}
	w.Seq = r.Seq
	next, err := was.Step(r)
	switch {
	case err != nil && !known:
		return w
	case next.status.Ended():
		w.open = without(w.open, r.Aggregate)
		w.Queue = plus(w.Queue, was.Requested.ModelToken, -1)
		return w
	case !known:
		w.Queue = plus(w.Queue, next.Requested.ModelToken, 1)
	}
	w.open = with(w.open, r.Aggregate, next)
	return w
}

// plus is m with n added to the count of k; a count of nothing is not there.
func plus(m map[string]int, k string, n int) map[string]int {
	if n += m[k]; n == 0 {
		return without(m, k)
	}
	return with(m, k, n)
}

// with and without never change the map that they are given.
func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	next := make(map[K]V, len(m)+1)
	maps.Copy(next, m)
	next[k] = v
	return next
}

func without[K comparable, V any](m map[K]V, k K) map[K]V {
	next := maps.Clone(m)
	delete(next, k)
	return next
}
