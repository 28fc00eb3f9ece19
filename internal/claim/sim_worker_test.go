package claim_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"correx/internal/claim"
	"correx/pkg/events"
)

// A life is one process of a worker. What it does it does through gates: behind
// one a frozen process waits, and a killed one ends, wherever it was.
type life struct {
	sim    *sim
	worker *simWorker
	claims *claim.Claims
	ctx    context.Context

	mu    sync.Mutex
	dead  bool
	thaw  chan struct{} // not nil: frozen
	ready bool          // its journal is recovered: it takes deliveries
}

func (l *life) gate() {
	l.mu.Lock()
	for !l.dead && l.thaw != nil {
		wait := l.thaw
		l.mu.Unlock()
		<-wait
		l.mu.Lock()
	}
	dead := l.dead
	l.mu.Unlock()
	if dead {
		runtime.Goexit()
	}
}

func (l *life) state() (alive, frozen, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.dead, l.thaw != nil, l.ready
}

func (l *life) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.thaw == nil {
		l.thaw = make(chan struct{})
	}
}

func (l *life) melt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.thaw != nil {
		close(l.thaw)
		l.thaw = nil
	}
}

func (l *life) kill() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.melt()
}

// A simWorker is a name with a journal on disk, and its present life.
type simWorker struct {
	id   events.WorkerID
	disk *simDisk
	mu   sync.Mutex
	now  *life
}

func (w *simWorker) life() *life {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// boot begins a life: first the journal, then deliveries.
func (s *sim) boot(w *simWorker) {
	l := &life{sim: s, worker: w, ctx: context.Background()}
	c, err := claim.New(claim.Config{
		Worker: w.id, Boot: "b", Log: flaky{l, s.log}, Ask: simAsk{l}, AckWait: simAckWait, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.t.Error(err)
		return
	}
	l.claims = c
	w.mu.Lock()
	w.now = l
	w.mu.Unlock()
	s.wg.Go(func() {
		for _, e := range w.disk.all() {
			_ = c.Recover(l.ctx, s.job(l, touches), e)
		}
		l.mu.Lock()
		l.ready = true
		l.mu.Unlock()
	})
}

// simAsk asks over a network that parts.
type simAsk struct{ *life }

func (a simAsk) AskRunning(ctx context.Context, id events.WorkerID, q claim.Question) (claim.Answer, error) {
	a.gate()
	if err := a.sim.delay(ctx, 3*time.Millisecond); err != nil {
		return claim.Answer{}, err
	}
	l := a.sim.workers[id].life()
	alive, frozen, _ := l.state()
	if !alive || a.sim.bad(10) {
		return claim.Answer{}, errGone
	}
	if frozen {
		<-ctx.Done()
		return claim.Answer{}, ctx.Err()
	}
	ans := l.claims.Running(q)
	a.gate()
	return ans, nil
}

// A simDisk is a worker's journal and the files of its machine. What is on it
// survives the process.
type simDisk struct {
	mu      sync.Mutex
	entries map[events.Aggregate]claim.Entry
	inPlace map[events.Aggregate]map[uint64]bool // by F: whose effect is in place
}

func (d *simDisk) all() []claim.Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []claim.Entry
	for _, e := range d.entries {
		out = append(out, e)
	}
	return out
}

func (d *simDisk) apply(a events.Aggregate, f uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.inPlace[a] == nil {
		d.inPlace[a] = map[uint64]bool{}
	}
	d.inPlace[a][f] = true
}

func (d *simDisk) effects(a events.Aggregate) []uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []uint64
	for f := range d.inPlace[a] {
		out = append(out, f)
	}
	return out
}

// simJournal is the disk as one life reaches it.
type simJournal struct{ *life }

func (j simJournal) put(e claim.Entry) {
	d := j.worker.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries[e.Aggregate] = e
}

func (j simJournal) begin(e claim.Entry) {
	j.gate()
	j.put(e)
	j.gate()
}

func (j simJournal) Entry(a events.Aggregate) (claim.Entry, bool) {
	d := j.worker.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.entries[a]
	return e, ok
}

func (j simJournal) Undo(_ context.Context, e claim.Entry) (claim.Undone, error) {
	j.gate()
	d := j.worker.disk
	d.mu.Lock()
	delete(d.inPlace[e.Aggregate], e.Fence.Started)
	d.mu.Unlock()
	j.gate()
	return claim.Undone{Effects: events.EffectsRolledBack, Files: []events.RecoveredFile{{Path: "/f", Effects: events.EffectsRolledBack}}}, nil
}

func (j simJournal) Result(e claim.Entry, end events.Fact) error {
	j.gate()
	e.Result = end
	j.put(e)
	j.gate()
	return nil
}

func (j simJournal) Forget(e claim.Entry) error {
	j.gate()
	d := j.worker.disk
	d.mu.Lock()
	delete(d.entries, e.Aggregate)
	d.mu.Unlock()
	return nil
}
