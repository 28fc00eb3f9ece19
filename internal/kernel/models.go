package kernel

import (
	"errors"
	"fmt"

	"correx/internal/eventlog"
	"correx/pkg/events"
)

// carryOutModel carries out model.load and model.unload: a wish on the log for
// each worker that offers the model.
func (k *Kernel) carryOutModel(w *wish) {
	for {
		done, err := k.tryModel(w)
		switch {
		case done:
			k.settle(w)
			return
		case err == nil:
			return // rejected
		case errors.Is(err, eventlog.ErrConflict):
			continue
		}
		if !k.pause("carry out "+string(w.Verb), err) {
			return
		}
	}
}

func (k *Kernel) tryModel(w *wish) (done bool, err error) {
	model, worker := modelOf(w.Command)
	offer, ok := k.world.Load().Model(model)
	if !ok {
		k.reject(w, []string{fmt.Sprintf("no model-worker offers the model %q", model)})
		return false, nil
	}
	for _, id := range offer.Workers {
		if worker != "" && worker != id {
			continue
		}
		if err := k.wishModel(w, offer.What, id); err != nil {
			return false, err
		}
		done = true
	}
	if !done {
		k.reject(w, []string{fmt.Sprintf("worker %q does not offer the model %q", worker, model)})
	}
	return done, nil
}

func modelOf(c events.Command) (events.ModelID, events.WorkerID) {
	switch b := c.(type) {
	case events.ModelLoad:
		return b.Model, b.Worker
	case events.ModelUnload:
		return b.Model, b.Worker
	}
	return "", ""
}

// wishModel appends the wish to one worker's aggregate of the model, unless a
// fact there cites the command already.
func (k *Kernel) wishModel(w *wish, offer events.ModelOffer, worker events.WorkerID) error {
	ref := events.Ref{Session: events.System, ID: events.ModelAggregateID(worker, offer.Token)}
	d := events.Decision{DecidedAt: k.folded.Load(), Now: k.Clock(), Command: w.ID, Actor: w.Actor}
	var f events.Fact = events.ModelLoadRequested{Ref: ref, Decision: d, Model: offer.Name, Worker: worker}
	if b, ok := w.Command.(events.ModelUnload); ok {
		f = events.ModelUnloadRequested{Ref: ref, Decision: d, Model: offer.Name, Worker: worker, Force: b.Force}
	}
	recs, err := k.Log.Read(k.ctx, events.AggregateOf(f))
	if err != nil {
		return err
	}
	var after uint64
	for _, r := range recs {
		after = r.Seq
		if c, ok := r.Fact.(interface{ Decided() events.Decision }); ok && c.Decided().Command == w.ID {
			return nil
		}
	}
	_, err = k.Log.Append(k.ctx, f, after, "command/"+string(w.ID))
	return err
}
