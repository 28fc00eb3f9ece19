package llama

import (
	"errors"
	"slices"
	"time"

	"correx/pkg/events"
)

// unload closes gone when the model is not in memory.
func (m *Manager) unload(id events.ModelID, force bool, gone chan struct{}) {
	if m.phase == empty || m.want.ModelID != id {
		close(gone)
		return
	}
	m.unloads = append(m.unloads, gone)
	switch {
	case m.phase == loading:
		m.failWaiters(loadError(m.want, errEmptied))
		m.giveUp(errEmptied)
	case m.phase == stopping:
	case force:
		m.reason = "unloaded by force"
		m.stop(ErrUnloaded)
	case m.phase == ready:
		m.drain("unloaded on request")
	}
}

// close refuses all that waits and ends what runs.
func (m *Manager) close() {
	m.closing = true
	for _, t := range m.waiting {
		t.out <- grant{err: ErrClosed}
	}
	m.waiting = nil
	switch m.phase {
	case loading:
		m.giveUp(ErrClosed)
	case ready, draining:
		m.reason = "the manager was closed"
		m.stop(ErrClosed)
	}
}

// enqueue takes a ticket in.
func (m *Manager) enqueue(t *ticket) {
	if m.closing {
		t.out <- grant{err: ErrClosed}
		return
	}
	t.since = time.Now()
	if err := m.resting(t.desc, t.since); err != nil && !(m.fits(t) && m.phase != empty) {
		t.out <- grant{err: err}
		return
	}
	m.waiting = append(m.waiting, t)
}

// withdraw takes a ticket back; one that was granted meanwhile is in t.out.
func (m *Manager) withdraw(t *ticket) {
	m.waiting = slices.DeleteFunc(m.waiting, func(o *ticket) bool { return o == t })
}

// release ends one use.
func (m *Manager) release(serial uint64) {
	if serial != m.serial || m.proc == nil {
		return // that process is gone
	}
	m.inFlight--
	m.alone = false
	m.touched = time.Now()
	if m.proc.Context().Err() == nil {
		m.record(m.want).ok()
	}
	if m.phase == ready && m.inFlight == 0 && m.want.ResidencyMode == events.Ephemeral {
		m.drain("unloaded after its use")
	}
}

// discard ends a process that is of no use any more.
func (m *Manager) discard(serial uint64, reason string) {
	if serial != m.serial || (m.phase != ready && m.phase != draining) {
		return
	}
	m.reason = reason
	m.stop(errors.New(reason))
}
