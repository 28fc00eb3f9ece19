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
	draining // nothing new is granted, but for tickets that are last; stops when nothing is in flight
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
	swapping bool      // what drains does so to make room
	alone    bool      // what is in flight wants nobody beside it
	waiting  []*ticket // in order of arrival
	unloads  []chan struct{}
	giveUp   func(error) // of the load
	gaveUp   error       // why the load was given up; nil: it was not
	closing  bool
	records  map[string]*record // by launch fields
}

// A ticket is somebody who waits for a model.
type ticket struct {
	desc  Descriptor
	since time.Time
	use   bool       // counts as in flight once granted
	alone bool       // with nothing else in flight
	last  bool       // is served before the swap that is due
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
		again = m.next(now)
	case loading:
		if m.other() != nil && !slices.ContainsFunc(m.waiting, m.fits) {
			m.giveUp(errNobodyWaits)
		}
	case ready:
		again = m.serve(now)
	case draining:
		if m.swapping && m.other() == nil && !m.closing && len(m.unloads) == 0 {
			m.phase, m.swapping = ready, false // nobody needs the room any more
			again = m.serve(now)
		} else {
			m.grantAll(now)
		}
	}
	if m.phase == draining && m.inFlight == 0 && !slices.ContainsFunc(m.waiting, func(t *ticket) bool { return t.last }) {
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
			m.swap(o)
			m.grantAll(now)
			return time.Time{}
		}
		again = due
	}
	m.grantAll(now)
	if m.inFlight > 0 || m.want.ResidencyMode == events.Persistent {
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

// grantAll gives the model to those who wait for it, in order, as far as it has
// slots. Whoever wants it alone holds up those behind.
func (m *Manager) grantAll(now time.Time) {
	if m.died() {
		return // they get the next one
	}
	full := false
	m.waiting = slices.DeleteFunc(m.waiting, func(t *ticket) bool {
		if !m.fits(t) || m.phase == draining && !t.last {
			return false
		}
		full = full || t.use && (m.alone || m.inFlight >= m.want.Parallel || t.alone && m.inFlight > 0)
		if full && t.use {
			return false
		}
		m.want.ResidencyMode, m.want.IdleTimeout = t.desc.ResidencyMode, t.desc.IdleTimeout
		m.touched = now
		if t.use {
			m.inFlight++
			m.alone = t.alone
		}
		t.out <- grant{lease: lease{m, m.proc, m.serial}}
		return true
	})
}

// load starts a process in the background.
func (m *Manager) load(d Descriptor) {
	ctx, cancel := context.WithCancelCause(context.Background())
	m.serial++
	m.phase, m.want, m.giveUp = loading, d, func(why error) { m.gaveUp = why; cancel(why) }
	serial, halved := m.serial, m.record(d).halved
	m.tasks.Go(func() {
		p, err := m.bring(ctx, d, halved)
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
	m.record(m.want).halved = p.Descriptor.ContextSize < m.want.ContextSize
	m.emit(Loaded{
		Descriptor: m.want, PID: p.PID(), ContextSize: p.Props.ContextSize, Latency: p.Latency, Server: p.Props.Build,
		Halved: p.Descriptor.ContextSize < m.want.ContextSize,
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
	if failed.ran && m.gaveUp == nil {
		failed.Reason += m.failure(m.want, failed.Error(), time.Now())
	}
	if m.gaveUp == nil { // who waits for one that was given up came later
		m.failWaiters(failed)
	}
	d, given := m.want, m.gaveUp
	defer closeAll(m.clear())
	if given == nil {
		m.emit(LoadFailed{Descriptor: d, Reason: failed.Reason, Log: failed.Log, OutOfMemory: failed.OutOfMemory})
	}
}

// failWaiters tells those who wait for the model that loads.
func (m *Manager) failWaiters(err error) {
	m.waiting = slices.DeleteFunc(m.waiting, func(t *ticket) bool {
		if m.fits(t) {
			t.out <- grant{err: err}
		}
		return m.fits(t)
	})
}

// swap makes room for o: those who wait for the model by now are served before,
// so that a load is for all of them, and nobody who comes later is.
func (m *Manager) swap(o *ticket) {
	for _, t := range m.waiting {
		t.last = m.fits(t)
	}
	m.swapping = true
	m.drain("swapped for " + string(o.desc.ModelID))
}

// drain lets what is in flight end and grants nothing more.
func (m *Manager) drain(reason string) { m.phase, m.reason = draining, reason }

// died reports whether the process has died unasked, though the word of it is
// still on its way here.
func (m *Manager) died() bool { return errors.Is(context.Cause(m.proc.Context()), errDied) }

// stop ends the process; with a cause also what is in flight. One that has died
// by itself is none that was stopped.
func (m *Manager) stop(cause error) {
	if m.died() {
		return
	}
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
		m.record(d).ok()
		m.emit(Unloaded{Descriptor: d, PID: p.PID(), Reason: reason})
		return
	}
	crash := Crashed{Descriptor: d, PID: p.PID(), Exit: p.Exit(), OutOfMemory: p.OutOfMemory(), Log: p.Tail(crashLines)}
	m.failure(d, crash.String(), time.Now())
	if _, ok := d.smaller(); ok && crash.OutOfMemory {
		m.record(d).halved = true
	}
	m.emit(crash)
	m.refuse(time.Now())
}

// clear makes the state empty. It returns who waits for an unload; they are told
// after the observer.
func (m *Manager) clear() (unloads []chan struct{}) {
	unloads = m.unloads
	for _, t := range m.waiting {
		t.last = false
	}
	m.phase, m.want, m.proc, m.inFlight, m.alone, m.reason, m.giveUp, m.unloads = empty, Descriptor{}, nil, 0, false, "", nil, nil
	m.gaveUp, m.swapping = nil, false
	return unloads
}

func closeAll(all []chan struct{}) {
	for _, c := range all {
		close(c)
	}
}
