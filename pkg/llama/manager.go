package llama

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"correx/pkg/events"
)

// Defaults of a [Config].
const (
	DefaultHold        = 2 * time.Second // how long a model may stay before it has to make room
	DefaultDeadTimeout = 5 * time.Minute // a large batch on a slow machine takes some of that
	DefaultBackoff     = 250 * time.Millisecond
	DefaultBreakAfter  = 5
	DefaultBreakFor    = time.Minute
)

// A Config says how a [Manager] runs its models. Zero durations mean the
// defaults.
type Config struct {
	Executable   string // llama-server: a path, or a name on PATH
	PIDFile      string // see [Reap]; empty: none
	Socket       string // see Launcher.Socket
	LogFile      string // what llama-server prints; its directory is made; empty: nowhere
	StallTimeout time.Duration
	LoadTimeout  time.Duration
	StopGrace    time.Duration
	DeadTimeout  time.Duration // a server that answers nothing for so long while it is used is ended
	Hold         time.Duration // a model is swapped out after this at the earliest, and no later than what is in flight then allows; negative: at once
	Backoff      time.Duration // before a model is loaded again that crashed or did not load; doubled with each failure in a row; negative: none
	BreakAfter   int           // failures in a row after which nobody waits any more
	BreakFor     time.Duration // and for how long
	Observer     Observer      // may be nil
	Logger       *slog.Logger
}

// A Manager keeps at most one model in memory, in one llama-server. One
// goroutine owns its state; methods are messages to it, so nobody checks first
// and acts later.
//
//	message \ state  empty        loading           ready                 draining           stopping
//	wanted           → loading    joins             granted, or queued    queued             queued
//	                              the load          for a slot
//	another wanted   → loading    queued; given up  queued; swap when     queued             queued
//	                              if it waits alone due → draining
//	waiter leaves    forgotten    as above          forgotten             swap called off    forgotten
//	                                                                      if for him → ready
//	unload           done         → empty           → draining            joins              joins
//	forced unload    done         → empty           → stopping            → stopping         joins
//	load is up       –            → ready           –                     –                  –
//	load fails       –            → empty           –                     –                  –
//	process ends     –            → empty, as load  → empty, crashed      → empty, crashed   → empty, unloaded
//	                              fails
//	use ends         –            –                 next one granted;     the last one       ignored
//	                                                Ephemeral → draining  → stopping
//	no answer        –            stall → empty     → stopping            → stopping         –
//	clock            pause over   stall, deadline   idle, or swap due     –                  SIGKILL after
//	                 → loading    → empty           → draining                               the grace
//	close            ends         → empty, ends     → stopping, ends      → stopping, ends   ends when dead
//
// In empty, the model of whoever waits longest is next, unless it pauses after a
// failure. A load that fails fails all who joined it. As many uses are granted at
// one time as the model has slots, in order of arrival.
//
// A swap is due when the model has been here for Config.Hold and either nothing
// is in flight or the other has waited as long. Those who wait for the model by
// then are served before it, those who come later are not. So nobody waits
// longer than, for each other model that somebody wants: Config.Hold, one use by
// each of its callers, a stop and a load.
//
// After a crash, or a load that came to nothing, a model pauses for
// Config.Backoff, twice as long after each further one. After Config.BreakAfter
// in a row nobody waits for it any more: [ErrResting] is the answer for
// Config.BreakFor, and then one more try is made. A use that ends well makes
// good. Where memory did not do, the model is loaded with half its context.
type Manager struct {
	cfg    Config
	launch func(context.Context, Descriptor) (*Process, error)
	log    *logFile

	calls chan func()
	done  chan struct{}  // closed when the owner of the state has ended
	tasks sync.WaitGroup // loads, stops, watches of processes
	state                // of the goroutine run alone
}

// NewManager returns a manager with no model loaded. It first kills a
// llama-server that a former process left behind. Close it.
func NewManager(cfg Config) (*Manager, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.PIDFile != "" {
		killed, err := Reap(cfg.PIDFile)
		if err != nil {
			return nil, err
		}
		if killed != 0 {
			cfg.Logger.Warn("killed a llama-server that was left behind", slog.Int("pid", killed))
		}
	}
	log, err := openLog(cfg.LogFile)
	if err != nil {
		return nil, err
	}
	l := &Launcher{
		Executable: cfg.Executable, PIDFile: cfg.PIDFile, Socket: cfg.Socket, log: log,
		StallTimeout: cfg.StallTimeout, LoadTimeout: cfg.LoadTimeout, StopGrace: cfg.StopGrace,
	}
	return newManager(cfg, l.Launch, log), nil
}

func newManager(cfg Config, launch func(context.Context, Descriptor) (*Process, error), log *logFile) *Manager {
	cfg.DeadTimeout = orDefault(cfg.DeadTimeout, DefaultDeadTimeout)
	cfg.Hold = max(0, orDefault(cfg.Hold, DefaultHold))
	cfg.Backoff = max(0, orDefault(cfg.Backoff, DefaultBackoff))
	cfg.BreakAfter = orDefault(cfg.BreakAfter, DefaultBreakAfter)
	cfg.BreakFor = orDefault(cfg.BreakFor, DefaultBreakFor)
	m := &Manager{cfg: cfg, launch: launch, log: log, calls: make(chan func()), done: make(chan struct{})}
	m.records = map[string]*record{}
	go m.run()
	return m
}

// Load returns the model when it is loaded. Callers that want the same join one
// load; with other launch fields the process is replaced. An error is a
// *LoadError, ErrClosed, or the end of ctx. The model may be gone again when
// Load returns: Managed brings it back.
func (m *Manager) Load(ctx context.Context, d Descriptor) (*Managed, error) {
	if _, err := m.acquire(ctx, ticket{desc: d}); err != nil {
		return nil, err
	}
	return m.Model(d), nil
}

// Model returns a model without loading it; whoever uses it gets it loaded.
func (m *Manager) Model(d Descriptor) *Managed { return &Managed{manager: m, desc: d.withDefaults()} }

// Unload returns when the model is not in memory: at once if it is not, else
// when its process is dead. It waits for what is in flight, unless force cancels
// that. Requests that come meanwhile load the model again.
func (m *Manager) Unload(ctx context.Context, id events.ModelID, force bool) error {
	gone := make(chan struct{})
	if !m.do(func() { m.unload(id, force, gone) }) {
		return ErrClosed
	}
	select {
	case <-gone:
		return nil
	case <-m.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("unload model %s: %w", id, orCancelled(ctx, nil))
	}
}

// Current returns the model that is in memory, or false.
func (m *Manager) Current() (d Descriptor, ok bool) {
	m.do(func() {
		if ok = m.phase == ready || m.phase == draining; ok {
			d = m.want
		}
	})
	return d, ok
}

// Health is that of the process; without one it is Unhealthy.
func (m *Manager) Health(ctx context.Context) Health {
	var p *Process
	m.do(func() { p = m.proc })
	if p == nil {
		return Unhealthy
	}
	return p.Client().Health(ctx)
}

// Close ends whatever runs and returns when it is dead. Who waits for a model
// gets ErrClosed. It may be called twice.
func (m *Manager) Close() error {
	m.do(m.close)
	<-m.done
	m.tasks.Wait()
	m.log.close()
	return nil
}

// do runs f in the goroutine that owns the state, and returns when it has run.
// It returns false, and does not run f, when that goroutine has ended.
func (m *Manager) do(f func()) bool {
	ran := make(chan struct{})
	select {
	case m.calls <- func() { defer close(ran); f() }:
		<-ran
		return true
	case <-m.done:
		return false
	}
}

// run owns the state until the manager is closed and nothing runs any more.
func (m *Manager) run() {
	defer close(m.done)
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for {
		at := m.advance(time.Now())
		if m.closing && m.phase == empty {
			return
		}
		// A timer that was reset fires no more for what it was set to before.
		if at.IsZero() {
			alarm.Stop()
		} else {
			alarm.Reset(time.Until(at))
		}
		select {
		case f := <-m.calls:
			f()
		case <-alarm.C:
		}
	}
}

func (m *Manager) emit(e ModelEvent) {
	if m.cfg.Observer != nil {
		m.cfg.Observer(e)
	}
}

// loadError turns why a load failed into what its waiters get.
func loadError(d Descriptor, err error) *LoadError {
	var failed *LoadError
	if errors.As(err, &failed) {
		return failed
	}
	return &LoadError{Model: d.ModelID, Reason: err.Error(), Err: err}
}
