package modelworker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"correx/internal/eventlog"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// A reporter puts facts about models on the log, in the order in which they came
// about. Whoever adds one does not wait.
type reporter struct {
	worker events.WorkerID
	log    *eventlog.Log
	logger *slog.Logger
	more   chan struct{} // has one when something was added

	mu      sync.Mutex
	waiting []events.Fact
	latest  map[events.ModelID]events.Fact // Loaded, or what ended that
	told    map[events.ModelID]int         // how many facts there have been
}

func newReporter(worker events.WorkerID, log *eventlog.Log, logger *slog.Logger) *reporter {
	return &reporter{
		worker: worker, log: log, logger: logger, more: make(chan struct{}, 1),
		latest: map[events.ModelID]events.Fact{}, told: map[events.ModelID]int{},
	}
}

// observe is the manager's observer.
func (r *reporter) observe(e llama.ModelEvent) {
	switch e := e.(type) {
	case llama.Loaded:
		id := e.Descriptor.ModelID
		r.logger.Info("model loaded", slog.String("model", string(id)), slog.Duration("took", e.Latency), slog.Int("pid", e.PID))
		r.add(id, events.ModelLoaded{
			Ref: r.ref(id), Model: id, Worker: r.worker, PID: e.PID, ContextSize: e.ContextSize, Latency: e.Latency, Server: e.Server,
			Wanted: wanted(e),
		})
	case llama.Unloaded:
		id := e.Descriptor.ModelID
		r.logger.Info("model unloaded", slog.String("model", string(id)), slog.String("reason", e.Reason))
		r.add(id, events.ModelUnloaded{Ref: r.ref(id), Model: id, Worker: r.worker, Reason: e.Reason})
	case llama.Crashed:
		id := e.Descriptor.ModelID
		r.logger.Error("llama-server crashed", slog.String("model", string(id)), slog.String("exit", e.Exit.String()))
		r.add(id, events.ModelCrashed{
			Ref: r.ref(id), Model: id, Worker: r.worker, ExitCode: e.Exit.Code, Signal: e.Exit.Signal, Log: e.Log,
			OutOfMemory: e.OutOfMemory,
		})
	case llama.LoadFailed:
		id := e.Descriptor.ModelID
		r.logger.Error("model not loaded", slog.String("model", string(id)), slog.String("reason", e.Reason))
		r.add(id, events.ModelLoadFailed{Ref: r.ref(id), Model: id, Worker: r.worker, Reason: e.Reason, Log: e.Log, OutOfMemory: e.OutOfMemory})
	}
}

// wanted is the context that a model has not got, for want of memory; 0: it has.
func wanted(e llama.Loaded) int {
	if !e.Halved {
		return 0
	}
	return e.Descriptor.ContextSize
}

// ref is the aggregate of a model on this worker.
func (r *reporter) ref(m events.ModelID) events.Ref {
	return events.Ref{Session: events.System, ID: events.ModelAggregateID(r.worker, events.Token(string(m)))}
}

func (r *reporter) add(m events.ModelID, f events.Fact) {
	r.mu.Lock()
	r.waiting = append(r.waiting, f)
	r.latest[m] = f
	r.told[m]++
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// state returns the latest fact about a model, nil for none, and how many there
// have been in this life.
func (r *reporter) state(m events.ModelID) (events.Fact, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest[m], r.told[m]
}

func (r *reporter) next() (events.Fact, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil, false
	}
	f := r.waiting[0]
	r.waiting = r.waiting[1:]
	return f, true
}

// run reports until ctx is done, and then what is left, for a moment.
func (r *reporter) run(ctx context.Context) {
	late, cancel := afterwards(ctx, farewell)
	defer cancel()
	for {
		f, ok := r.next()
		if ok {
			if _, err := r.log.Report(late, f); err != nil {
				r.logger.Error("fact about a model is lost", slog.Any("error", err))
			}
			continue
		}
		select {
		case <-r.more:
		case <-ctx.Done():
			if r.empty() {
				return
			}
		}
	}
}

func (r *reporter) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) == 0
}

// farewell is how long a worker that stops tries to say so.
const farewell = 5 * time.Second

// afterwards returns a context that outlives ctx by d.
func afterwards(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(d, cancel)
		context.AfterFunc(late, func() { t.Stop() })
	})
	return late, func() { stop(); cancel() }
}
