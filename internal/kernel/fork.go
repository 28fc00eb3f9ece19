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

// others is what a command may look at beside its own key.
func (k *Kernel) others() session.Others {
	return session.Others{
		Read: eventlog.Sessions(k.ctx, k.Log),
		Last: func() (uint64, error) { return k.Log.Last(k.ctx) },
	}
}
