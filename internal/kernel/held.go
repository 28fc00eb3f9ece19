package kernel

import (
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/pkg/events"
)

// Commands that are taken on are held until a fact carries them out or rejects
// them; only then are they acknowledged. A redelivery of one that is held is a
// hint that the server lost patience, no more.

func (k *Kernel) hold(w *wish) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[w.ID] = w
}

// keepIfHeld reports whether the command is held already; then the new delivery
// is the one to acknowledge later.
func (k *Kernel) keepIfHeld(id events.CommandID, m jetstream.Msg) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	w, ok := k.held[id]
	if ok {
		w.msg = m
	}
	return ok
}

// keepCommands tells the server that all that is held is still worked on.
func (k *Kernel) keepCommands() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.held {
		if err := w.msg.InProgress(); err != nil {
			k.logger.Debug("keep command", "command", w.ID, "err", err)
		}
	}
}

// settle acknowledges a command that a fact answers.
func (k *Kernel) settle(w *wish) {
	k.mu.Lock()
	delete(k.held, w.ID)
	m := w.msg
	k.mu.Unlock()
	if err := m.Ack(); err != nil {
		k.logger.Debug("acknowledge command", "command", w.ID, "err", err)
	}
	k.free(w)
}

// free gives the place of a command that waits, or is done, to the next.
func (k *Kernel) free(w *wish) {
	if w.slot {
		w.slot = false
		<-k.slots
	}
}

func isConflict(err error) bool { return errors.Is(err, eventlog.ErrConflict) }
