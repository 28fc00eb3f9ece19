package llama

import (
	"context"
	"errors"
	"slices"
	"time"

	"correx/pkg/events"
)

// A phase is a row of the manager's state table.
type phase int

const (
	empty phase = iota
	loading
	ready
	draining // nothing new is granted; stops when nothing is in flight
	stopping // until the process is dead
)

// state is what the manager's goroutine owns.
type state struct {
	phase    phase
	want     Descriptor // loading: this; later: what is loaded
	proc     *Process   // from ready to its death
	serial   uint64     // counts loads, so that what is late is known for it
	inFlight int
	since    time.Time // ready since
	touched  time.Time // the idle clock runs from here: ready, or the last end
	reason   string    // of the stop
	waiting  []*ticket // in order of arrival
	unloads  []chan struct{}
	giveUp   context.CancelCauseFunc // of the load
	closing  bool
}

// A ticket is somebody who waits for a model.
type ticket struct {
	desc  Descriptor
	since time.Time
	use   bool       // counts as in flight once granted
	out   chan grant // holds one
}

type grant struct {
	lease lease
	err   error
}

var (
	errNobodyWaits = errors.New("nobody waits for the model any more")
	errEmptied     = errors.New("the model was to be unloaded while it was loading")
)

// advance does what the state asks for, and returns when to look again; zero:
// not before something happens.
func (m *Manager) advance(now time.Time) (again time.Time) {
	switch m.phase {
	case empty:
		if len(m.waiting) > 0 {
			m.load(m.waiting[0].desc)
		}
	case loading:
		if m.other() != nil && !slices.ContainsFunc(m.waiting, m.fits) {
			m.giveUp(errNobodyWaits)
		}
	case ready:
		again = m.serve(now)
	}
	if m.phase == draining && m.inFlight == 0 {
		m.stop(nil)
	}
	return again
}

// serve grants what may be granted, or begins to drain.
func (m *Manager) serve(now time.Time) (again time.Time) {
	o := m.other()
	if o != nil {
		due := m.since.Add(m.cfg.Hold)
		if patience := o.since.Add(m.cfg.Hold); m.inFlight > 0 && patience.After(due) {
			due = patience
		}
		if !now.Before(due) {
			m.drain("swapped for " + string(o.desc.ModelID))
			return time.Time{}
		}
		again = due
	}
	m.grantAll(now)
	if m.inFlight > 0 || m.want.ResidencyMode != events.Dynamic {
		return again
	}
	idle := m.touched.Add(m.want.IdleTimeout)
	if !now.Before(idle) {
		m.drain("idle for " + m.want.IdleTimeout.String())
		return time.Time{}
	}
	if again.IsZero() || idle.Before(again) {
		again = idle
	}
	return again
}

// fits reports whether the process that is there, or comes, serves t.
func (m *Manager) fits(t *ticket) bool { return t.desc.sameLaunch(m.want) }

// other returns who waits longest for another model, or nil.
func (m *Manager) other() *ticket {
	for _, t := range m.waiting {
		if !m.fits(t) {
			return t
		}
	}
	return nil
}

// grantAll gives the model to everybody who waits for it.
func (m *Manager) grantAll(now time.Time) {
	m.waiting = slices.DeleteFunc(m.waiting, func(t *ticket) bool {
		if !m.fits(t) {
			return false
		}
		m.want.ResidencyMode, m.want.IdleTimeout = t.desc.ResidencyMode, t.desc.IdleTimeout
		m.touched = now
		if t.use {
			m.inFlight++
		}
		t.out <- grant{lease: lease{m, m.proc, m.serial}}
		return true
	})
}

// load starts a process in the background.
func (m *Manager) load(d Descriptor) {
	ctx, cancel := context.WithCancelCause(context.Background())
	m.serial++
	m.phase, m.want, m.giveUp = loading, d, cancel
	serial := m.serial
	m.tasks.Go(func() {
		p, err := m.launch(ctx, d)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		cancel(nil)
		m.do(func() { m.loaded(p, err) })
		if err == nil {
			<-p.Done()
			m.do(func() { m.ended(serial) })
		}
	})
}

// loaded commits the outcome of a load.
func (m *Manager) loaded(p *Process, err error) {
	if err != nil {
		m.failed(err)
		return
	}
	now := time.Now()
	m.phase, m.proc, m.inFlight, m.since, m.touched = ready, p, 0, now, now
	m.emit(Loaded{
		Descriptor: m.want, PID: p.PID(), ContextSize: p.Props.ContextSize, Latency: p.Latency, Server: p.Props.Build,
	})
	switch {
	case m.closing:
		m.drain("the manager was closed")
	case len(m.unloads) > 0:
		m.drain("unloaded on request")
	default:
		m.grantAll(now)
	}
}

// failed ends a load that came to nothing.
func (m *Manager) failed(err error) {
	failed := loadError(m.want, err)
	m.waiting = slices.DeleteFunc(m.waiting, func(t *ticket) bool {
		if m.fits(t) {
			t.out <- grant{err: failed}
		}
		return m.fits(t)
	})
	d := m.want
	defer closeAll(m.clear())
	if !errors.Is(err, errNobodyWaits) && !errors.Is(err, errEmptied) && !errors.Is(err, ErrClosed) {
		m.emit(LoadFailed{Descriptor: d, Reason: failed.Reason, Log: failed.Log})
	}
}

// drain lets what is in flight end and grants nothing more.
func (m *Manager) drain(reason string) { m.phase, m.reason = draining, reason }

// stop ends the process; with a cause also what is in flight.
func (m *Manager) stop(cause error) {
	m.phase = stopping
	p := m.proc
	m.tasks.Go(func() { p.Stop(orDefault(cause, ErrUnloaded)) })
}

// ended commits the death of a process.
func (m *Manager) ended(serial uint64) {
	if serial != m.serial || m.proc == nil {
		return
	}
	p, d, wanted, reason := m.proc, m.want, m.phase == stopping, m.reason
	defer closeAll(m.clear())
	if wanted {
		m.emit(Unloaded{Descriptor: d, PID: p.PID(), Reason: reason})
		return
	}
	m.emit(Crashed{Descriptor: d, PID: p.PID(), Exit: p.Exit(), Log: p.Tail(crashLines)})
}

// clear makes the state empty. It returns who waits for an unload; they are told
// after the observer.
func (m *Manager) clear() (unloads []chan struct{}) {
	unloads = m.unloads
	m.phase, m.want, m.proc, m.inFlight, m.reason, m.giveUp, m.unloads = empty, Descriptor{}, nil, 0, "", nil, nil
	return unloads
}

func closeAll(all []chan struct{}) {
	for _, c := range all {
		close(c)
	}
}
