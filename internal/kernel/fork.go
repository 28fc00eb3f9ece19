package kernel

import (
	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// next folds one more record. The past of a fork stands in another session: it is
// read until the server gives it, for without it nothing can be decided. Only a
// kernel that stops goes on without.
func (k *Kernel) next(s session.State, r events.Record) session.State {
	for {
		next, err := session.Continue(s, r, eventlog.Sessions(k.ctx, k.Log))
		if err == nil {
			return next
		}
		if !k.pause("read the past of a fork", err) {
			return s
		}
	}
}

// handle says what becomes of a command. A fork is decided on the other session as
// it was, which no later record can change.
func (k *Kernel) handle(s session.State, w session.World, c *wish) (session.Answer, error) {
	fork, ok := c.Command.(events.SessionFork)
	if !ok {
		return session.Handle(s, w, c.Wish, k.Clock()), nil
	}
	end, err := k.Log.Last(k.ctx)
	if err != nil {
		return session.Answer{}, err
	}
	from, err := session.ReadForkPoint(eventlog.Sessions(k.ctx, k.Log), fork.Session, fork.At, end)
	if err != nil {
		return session.Answer{}, err
	}
	return session.HandleFork(s, from, w, c.Wish, k.Clock()), nil
}
