package refold

import (
	"slices"

	"correx/internal/session"
	"correx/pkg/events"
)

// recent is how many states of a key, and worlds of all, are kept; older ones are
// folded again.
const (
	recentStates = 16
	recentWorlds = 4096
)

// A fold is one key's state, with those that it had lately.
type fold struct {
	id    session.Key
	state session.State
	past  []session.State
	found bool // a decision was not what it should be
}

func (f *fold) push(s session.State) {
	if len(f.past) == recentStates {
		f.past = slices.Delete(f.past, 0, 1)
	}
	f.past = append(f.past, s)
	f.state = s
}

// at returns the state whose last record is seq, if it is still there.
func (f *fold) at(seq uint64) (session.State, bool) {
	for _, s := range slices.Backward(f.past) {
		if s.Seq == seq {
			return s, true
		}
	}
	return session.State{}, false
}

// rests reports whether an aggregate of no session has ended, so that it needs no
// memory.
func (f *fold) rests() bool { return f.id.Kind != "" && f.state.Rests() }

// last is the last record that the state has of an aggregate.
func last(s session.State, a events.Aggregate) uint64 {
	switch a.Kind {
	case events.KindSession:
		return s.MainSeq
	case events.KindTool:
		i, _ := s.Tool(events.ToolInvocationID(a.ID))
		return i.LastSeq
	}
	i, _ := s.Inference(events.InferenceID(a.ID))
	return i.LastSeq
}

// worlds are the worlds that there were lately, oldest first.
type worlds struct {
	now  session.World
	past []session.World
}

func (w *worlds) fold(r events.Record) {
	next := session.EvolveWorld(w.now, r)
	if next.Seq == w.now.Seq {
		return
	}
	if len(w.past) == recentWorlds {
		w.past = append(w.past[:0], w.past[recentWorlds/2:]...)
	}
	w.past = append(w.past, w.now)
	w.now = next
}

// at returns the world whose last record is seq, if it is still there.
func (w *worlds) at(seq uint64) (session.World, bool) {
	if w.now.Seq == seq {
		return w.now, true
	}
	k, ok := slices.BinarySearchFunc(w.past, seq, func(x session.World, seq uint64) int {
		switch {
		case x.Seq < seq:
			return -1
		case x.Seq > seq:
			return 1
		}
		return 0
	})
	if !ok {
		return session.World{}, false
	}
	return w.past[k], true
}
