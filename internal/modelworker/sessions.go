package modelworker

import (
	"context"
	"fmt"
	"sync"

	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// maxSessions bounds how many folds are kept, so that a turn reads only what is
// new.
const maxSessions = 64

// sessions folds sessions from the log. It is safe for concurrent use.
type sessions struct {
	log eventlog.Source

	mu   sync.Mutex
	kept map[events.SessionID]fold
	tick int
}

type fold struct {
	state   session.State
	through uint64 // read up to here; the state's last record may be before it
	used    int
}

func newSessions(log eventlog.Source) *sessions {
	return &sessions{log: log, kept: map[events.SessionID]fold{}}
}

// at returns a session as it was at sequence through. What belongs to no session
// has none.
func (s *sessions) at(ctx context.Context, id events.SessionID, through uint64) (session.State, error) {
	if id == events.System {
		return session.State{ID: id}, nil
	}
	s.mu.Lock()
	f := s.kept[id]
	s.mu.Unlock()
	if f.through > through {
		f = fold{} // an older turn than the one we know: from the beginning
	}
	if f.through < through {
		err := s.log.Each(ctx, events.SessionFilter(id), f.through+1, through, func(r events.Record) (err error) {
			f.state, err = session.Continue(f.state, r, eventlog.Sessions(ctx, s.log))
			return err
		})
		if err != nil {
			return session.State{}, fmt.Errorf("read session %s up to %d: %w", id, through, err)
		}
		f.through = through
	}
	s.keep(id, f)
	return f.state, nil
}

// keep remembers the furthest fold of each session, and forgets the one that was
// not used for longest.
func (s *sessions) keep(id events.SessionID, f fold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick++
	f.used = s.tick
	if s.kept[id].through <= f.through {
		s.kept[id] = f
	}
	if len(s.kept) <= maxSessions {
		return
	}
	oldest := id
	for k, o := range s.kept {
		if o.used < s.kept[oldest].used {
			oldest = k
		}
	}
	delete(s.kept, oldest)
}

// offers finds tools as workers announced them. It is safe for concurrent use.
type offers struct {
	log eventlog.Source

	mu      sync.Mutex
	known   map[events.ToolRef]events.ToolOffer
	through uint64
}

func newOffers(log eventlog.Source) *offers {
	return &offers{log: log, known: map[events.ToolRef]events.ToolOffer{}}
}

// find returns the offers that refs name, in their order, as they stand on the
// log up to sequence through. The log is read only for those that are not known:
// a digest says what an offer is.
func (o *offers) find(ctx context.Context, refs []events.ToolRef, through uint64) ([]events.ToolOffer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.knows(refs) {
		if err := o.read(ctx, through); err != nil {
			return nil, err
		}
	}
	var found []events.ToolOffer
	for _, ref := range refs {
		offer, ok := o.known[ref]
		if !ok {
			return nil, &unknownToolError{ref}
		}
		found = append(found, offer)
	}
	return found, nil
}

func (o *offers) knows(refs []events.ToolRef) bool {
	for _, ref := range refs {
		if _, ok := o.known[ref]; !ok {
			return false
		}
	}
	return true
}

// read takes in the announcements that are new.
func (o *offers) read(ctx context.Context, through uint64) error {
	if o.through >= through {
		return nil
	}
	filter := events.KindFilter(events.System, events.KindWorker)
	err := o.log.Each(ctx, filter, o.through+1, through, func(r events.Record) error {
		if f, ok := r.Fact.(events.WorkerStarted); ok {
			for _, t := range session.ToolsOf(f) {
				o.known[events.ToolRef{Name: t.Name, Digest: t.Digest}] = t
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what workers announced: %w", err)
	}
	o.through = through
	return nil
}

// An unknownToolError is a request that names a tool which nobody announced so.
type unknownToolError struct{ ref events.ToolRef }

func (e *unknownToolError) Error() string {
	return fmt.Sprintf("the request offers the tool %s as %.12s, which no worker announced", e.ref.Name, e.ref.Digest)
}
