package eventlog_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

func TestFollowFromASequence(t *testing.T) {
	onEach(t, func(t *testing.T, b *natstest.Bus, js jetstream.JetStream) {
		l := open(t, js)
		a, c := chain(t, l, "a", 20), chain(t, l, "c", 20)
		all := append(append([]uint64{}, a...), c...)
		for _, x := range []struct {
			filter string
			from   uint64
			want   []uint64
		}{
			{"evt.>", 0, all}, {"evt.>", 1, all}, {">", 7, all[6:]}, {"evt.c.>", 1, c}, {"evt.c.>", c[10], c[10:]},
			{"evt.*.session.main.message", a[19], all[19:]},
		} {
			f := follow(t, l, x.filter, x.from)
			for _, want := range x.want {
				if got := f.next(t); got.Seq != want || got.Err != nil {
					t.Fatalf("%s from %d: sequence %d (%v), want %d", x.filter, x.from, got.Seq, got.Err, want)
				}
			}
			f.stop()
			if err := f.end(t); err != nil {
				t.Errorf("%s from %d ended with %v", x.filter, x.from, err)
			}
		}
		// The end of the stream is where a follower waits for what comes.
		f := follow(t, l, "evt.>", c[19]+1)
		if seq := appendTo(t, l, "c", "new", c[19]); f.next(t).Seq != seq {
			t.Error("the first new record was missed")
		}
	})
}

// Servers stop and start while many write: a follower of all and one of a part
// miss nothing, see nothing twice, and nothing out of order.
func TestFollowAcrossRestarts(t *testing.T) {
	const writers, facts = 4, 60
	onEach(t, func(t *testing.T, b *natstest.Bus, js jetstream.JetStream) {
		l := open(t, js, func(o *eventlog.Options) { o.Answer = 300 * time.Millisecond })
		follower := open(t, b.JetStream(t), func(o *eventlog.Options) { o.Watch = 200 * time.Millisecond })
		whole, part := follow(t, follower, "evt.>", 1), follow(t, follower, "evt.w1.>", 1)
		progress := make(chan struct{}, writers*facts)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				last := uint64(0)
				for i := range facts {
					seq, err := l.Append(natstest.Context(t), message(events.SessionID(fmt.Sprintf("w%d", w)), fmt.Sprint(i)), last, "")
					if err != nil {
						t.Error(err)
						return
					}
					last = seq
					progress <- struct{}{}
				}
			})
		}
		for round := range 3 {
			steps(t, progress, writers*facts/4)
			b.RestartNode(round % b.Size())
		}
		all.Wait()
		for want := uint64(1); want <= writers*facts; want++ {
			if got := whole.next(t).Seq; got != want {
				t.Fatalf("sequence %d came, %d was due", got, want)
			}
		}
		for i := range facts {
			if got := part.next(t).Fact.(events.MessageAdded).Text; got != fmt.Sprint(i) {
				t.Fatalf("fact %s of w1 came, %d was due", got, i)
			}
		}
		if len(whole.got)+len(part.got) != 0 {
			t.Error("something came twice")
		}
	})
}

func TestFollowEndsWithItsHandler(t *testing.T) {
	l := open(t, streams(t))
	chain(t, l, "s", 3)
	full := errors.New("disk full")
	n := 0
	err := l.Follow(natstest.Context(t), "evt.>", 1, func(r events.Record) error {
		if n++; r.Seq == 2 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) || n != 2 {
		t.Errorf("%v after %d records, want %v after 2", err, n, full)
	}
}

// erasable makes EVENTS without the guard against deletion.
func erasable(t *testing.T) jetstream.JetStream {
	js := natstest.Server(t).JetStream(t)
	cfg := natstest.StreamConfig("EVENTS", "evt.>", 1)
	cfg.DenyDelete, cfg.DenyPurge = false, false
	natstest.Stream(t, js, cfg)
	return js
}

func TestGapIsAnAlarm(t *testing.T) {
	for _, c := range []struct {
		name   string
		erase  func(*testing.T, jetstream.Stream) error
		filter string
		from   uint64
		want   eventlog.GapError
	}{
		{"between", del(5), "evt.>", 1, eventlog.GapError{Want: 5, Got: 6}},
		{"at the beginning", del(1), "evt.>", 1, eventlog.GapError{Want: 1, Got: 2}},
		{"at the end", del(10), "evt.>", 1, eventlog.GapError{Want: 10}},
		{"several", func(t *testing.T, s jetstream.Stream) error { return errors.Join(del(6)(t, s), del(5)(t, s)) }, "evt.>", 3, eventlog.GapError{Want: 5, Got: 7}},
		{"purged, and a filter", func(t *testing.T, s jetstream.Stream) error {
			return s.Purge(natstest.Context(t), jetstream.WithPurgeSequence(4))
		}, "evt.s.>", 2, eventlog.GapError{Want: 2, Got: 4}},
		{"all", func(t *testing.T, s jetstream.Stream) error { return s.Purge(natstest.Context(t)) }, "evt.>", 1, eventlog.GapError{Want: 1, Got: 11}},
	} {
		t.Run(c.name, func(t *testing.T) {
			js := erasable(t)
			l := open(t, js, func(o *eventlog.Options) { o.Watch = 20 * time.Millisecond })
			chain(t, l, "s", 10)
			s, err := js.Stream(natstest.Context(t), "EVENTS")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.erase(t, s); err != nil {
				t.Fatal(err)
			}
			var gap *eventlog.GapError
			if err := follow(t, l, c.filter, c.from).end(t); !errors.As(err, &gap) || *gap != c.want {
				t.Errorf("%v, want %+v", err, c.want)
			}
		})
	}
}

func del(seq uint64) func(*testing.T, jetstream.Stream) error {
	return func(t *testing.T, s jetstream.Stream) error { return s.DeleteMsg(natstest.Context(t), seq) }
}

// A filter cannot tell another's deleted record from its own, and goes on.
func TestFilteredFollowerStepsOverOthersGaps(t *testing.T) {
	js := erasable(t)
	l := open(t, js)
	a := chain(t, l, "a", 3)
	b := chain(t, l, "b", 3)
	s, err := js.Stream(natstest.Context(t), "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteMsg(natstest.Context(t), a[2]); err != nil {
		t.Fatal(err)
	}
	f := follow(t, l, "evt.b.>", 1)
	for _, want := range b {
		if got := f.next(t).Seq; got != want {
			t.Fatalf("sequence %d came, %d was due", got, want)
		}
	}
}

func TestShrunkStreamIsAnAlarm(t *testing.T) {
	l := open(t, streams(t))
	last := chain(t, l, "s", 3)[2]
	var shrunk *eventlog.ShrunkError
	err := follow(t, l, "evt.>", last+2).end(t)
	if !errors.As(err, &shrunk) || shrunk.Last != last || shrunk.Next != last+2 {
		t.Errorf("%v, want that %d is last and %d was due", err, last, last+2)
	}
}

// A consumer that is alive and says nothing: the follower asks the leader, and
// makes another.
func TestFollowNoticesSilence(t *testing.T) {
	js := streams(t)
	l := open(t, js, func(o *eventlog.Options) { o.Watch = 50 * time.Millisecond })
	last := appendTo(t, l, "s", "one", 0)
	f := follow(t, l, "evt.>", 1)
	f.next(t)
	for name := range consumers(t, js) {
		if _, err := js.PauseConsumer(natstest.Context(t), "EVENTS", name, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if seq := appendTo(t, l, "s", "two", last); f.next(t).Seq != seq {
		t.Error("another record came")
	}
}

// Somebody deletes the consumer.
func TestFollowSurvivesItsConsumer(t *testing.T) {
	js := streams(t)
	l := open(t, js)
	last := appendTo(t, l, "s", "one", 0)
	f := follow(t, l, "evt.>", 1)
	f.next(t)
	for name := range consumers(t, js) {
		if err := js.DeleteConsumer(natstest.Context(t), "EVENTS", name); err != nil {
			t.Fatal(err)
		}
	}
	if seq := appendTo(t, l, "s", "two", last); f.next(t).Seq != seq {
		t.Error("another record came")
	}
}

func consumers(t *testing.T, js jetstream.JetStream) map[string]bool {
	t.Helper()
	s, err := js.Stream(natstest.Context(t), "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for name := range s.ConsumerNames(natstest.Context(t)).Name() {
		names[name] = true
	}
	if len(names) == 0 {
		t.Fatal("nobody follows")
	}
	return names
}
