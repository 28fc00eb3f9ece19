package modelworker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"correx/pkg/events"
	"correx/pkg/llama"
)

// A story is what the log says of one model on this worker.
type story struct {
	wish   events.Fact // the latest load or unload that was asked for and is not answered; nil: none
	seq    uint64      // of the wish
	loaded bool        // as far as was told
}

// storyOf folds the aggregate of a model. A wish to load is answered by loaded or
// load_failed, one to unload by what says that it is gone; of several unanswered
// ones only the latest counts.
func storyOf(recs []events.Record) (s story) {
	for _, r := range recs {
		switch f := r.Fact.(type) {
		case events.ModelLoadRequested, events.ModelUnloadRequested:
			s.wish, s.seq = f, r.Seq
		case events.ModelLoaded:
			s.loaded = true
			s.answer(events.ModelLoadRequested{}.FactName())
		case events.ModelLoadFailed:
			s.loaded = false
			s.answer(events.ModelLoadRequested{}.FactName())
		case events.ModelUnloaded, events.ModelCrashed:
			s.loaded = false
			s.answer(events.ModelUnloadRequested{}.FactName())
		}
	}
	return s
}

func (s *story) answer(n events.FactName) {
	if s.wish != nil && s.wish.FactName() == n {
		s.wish = nil
	}
}

// lookAgain is how often wishes are looked for though nobody rang.
const lookAgain = 30 * time.Second

// wishes carries out what the log asks this worker to load and unload.
type wishes struct {
	log    factReader
	fleet  *fleet
	report *reporter
	models map[string]llama.Descriptor // by aggregate id
	logger *slog.Logger
	rings  chan struct{} // has one when something may be new

	begun map[string]uint64 // wishes under way or done, of the goroutine run alone
	work  sync.WaitGroup
}

// A factReader reads an aggregate.
type factReader interface {
	Read(ctx context.Context, a events.Aggregate) ([]events.Record, error)
}

// ring has the log looked at, if a is a model of ours.
func (w *wishes) ring(a events.Aggregate) {
	if _, ours := w.models[a.ID]; !ours {
		return
	}
	select {
	case w.rings <- struct{}{}:
	default:
	}
}

// run looks for wishes until ctx is done, and returns when none is under way.
func (w *wishes) run(ctx context.Context) {
	defer w.work.Wait()
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	w.look(ctx, true)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.rings:
		case <-tick.C:
		}
		w.look(ctx, false)
	}
}

// look reads what is asked of each model. The first time it also says of what a
// former process had loaded that it is gone: its llama-server died with it.
func (w *wishes) look(ctx context.Context, first bool) {
	for id, d := range w.models {
		recs, err := w.log.Read(ctx, events.Aggregate{Session: events.System, Kind: events.KindModel, ID: id})
		if err != nil {
			w.logger.Warn("read what is asked of a model", slog.String("model", string(d.ModelID)), slog.Any("error", err))
			continue
		}
		s := storyOf(recs)
		if _, told := w.report.state(d.ModelID); first && s.loaded && told == 0 {
			w.unloaded(d, "its worker ended without saying so, and llama-server with it")
		}
		if s.wish != nil && s.seq > w.begun[id] {
			w.begun[id] = s.seq
			w.work.Go(func() { w.grant(ctx, d, s.wish) })
		}
	}
}

// grant carries out one wish. The manager reports what comes of it; where nothing
// has to be done, the state is told once more, so that the wish is answered.
func (w *wishes) grant(ctx context.Context, d llama.Descriptor, wish events.Fact) {
	_, before := w.report.state(d.ModelID)
	var err error
	if f, unload := wish.(events.ModelUnloadRequested); unload {
		err = w.fleet.of(d.ModelID).Unload(ctx, d.ModelID, f.Force)
	} else {
		_, err = w.fleet.of(d.ModelID).Load(ctx, d)
	}
	if err != nil {
		w.logger.Warn("what was asked of a model", slog.String("model", string(d.ModelID)),
			slog.String("wish", string(wish.FactName())), slog.Any("error", err))
		return
	}
	latest, after := w.report.state(d.ModelID)
	if before != after {
		return
	}
	if _, unload := wish.(events.ModelUnloadRequested); unload {
		w.unloaded(d, "it was not loaded")
	} else if f, ok := latest.(events.ModelLoaded); ok {
		w.report.add(d.ModelID, f)
	}
}

func (w *wishes) unloaded(d llama.Descriptor, reason string) {
	w.report.add(d.ModelID, events.ModelUnloaded{
		Ref: w.report.ref(d.ModelID), Model: d.ModelID, Worker: w.report.worker, Reason: reason,
	})
}
