package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

func TestAppendExpectsTheLastRecord(t *testing.T) {
	onEach(t, func(t *testing.T, b *natstest.Bus, js jetstream.JetStream) {
		l := open(t, js)
		first := appendTo(t, l, "s", "one", 0)
		for _, after := range []uint64{0, first + 1, first + 100} {
			if _, err := l.Append(natstest.Context(t), message("s", "two"), after, ""); !errors.Is(err, eventlog.ErrConflict) {
				t.Errorf("append after %d: %v, want a conflict", after, err)
			}
		}
		other := appendTo(t, l, "other", "one", 0)
		second := appendTo(t, l, "s", "two", first)
		if _, err := l.Append(natstest.Context(t), message("s", "three"), other, ""); !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("append after another aggregate's record: %v, want a conflict", err)
		}
		recs := read(t, l, "s")
		if len(recs) != 2 || recs[0].Seq != first || recs[1].Seq != second {
			t.Fatalf("read %v, want %d and %d", recs, first, second)
		}
		if r := recs[1]; r.Err != nil || r.Fact.(events.MessageAdded).Text != "two" {
			t.Errorf("second record is %+v", r)
		}
	})
}

// One server answers 10071; several may answer 10164. Both are met here, raw,
// and through Append both are a conflict.
func TestBothCodesAreConflicts(t *testing.T) {
	codes := map[jetstream.ErrorCode]bool{}
	onEach(t, func(t *testing.T, b *natstest.Bus, js jetstream.JetStream) {
		l := open(t, js)
		var mu sync.Mutex
		for round := range 20 {
			s := events.SessionID(fmt.Sprintf("s%d", round))
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					_, err := js.Publish(natstest.Context(t), "evt."+string(s)+".raw.main.x", nil,
						jetstream.WithExpectLastSequenceForSubject(0, "evt."+string(s)+".raw.main.>"))
					var api *jetstream.APIError
					if errors.As(err, &api) {
						mu.Lock()
						codes[api.ErrorCode] = true
						mu.Unlock()
					}
				})
				all.Go(func() {
					if _, err := l.Append(natstest.Context(t), message(s, "x"), 0, ""); err != nil && !errors.Is(err, eventlog.ErrConflict) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n := len(read(t, l, s)); n != 1 {
				t.Fatalf("%d records, want one", n)
			}
		}
	})
	for _, code := range []jetstream.ErrorCode{jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant} {
		if !codes[code] {
			t.Errorf("no server answered %d; met %v", code, codes)
		}
	}
}

// A conflict promises that whoever reads now finds something new.
func TestRacersHaveOneWinner(t *testing.T) {
	onEach(t, func(t *testing.T, b *natstest.Bus, js jetstream.JetStream) {
		logs := make([]*eventlog.Log, b.Size())
		for i := range logs {
			logs[i] = open(t, natstest.JetStream(t, b.ConnectNode(t, i)))
		}
		last := uint64(0)
		for round := range 50 {
			var mu sync.Mutex
			var won []uint64
			var all sync.WaitGroup
			for racer := range 64 {
				all.Go(func() {
					l := logs[racer%len(logs)]
					seq, err := l.Append(natstest.Context(t), message("s", fmt.Sprint(racer)), last, "")
					switch {
					case err == nil:
						mu.Lock()
						won = append(won, seq)
						mu.Unlock()
					case !errors.Is(err, eventlog.ErrConflict):
						t.Error(err)
					default:
						if recs, err := l.Since(natstest.Context(t), sessionOf("s").Filter(), last+1); err != nil || len(recs) != 1 {
							t.Errorf("after a conflict %d new records are there (%v), want 1", len(recs), err)
						}
					}
				})
			}
			all.Wait()
			if len(won) != 1 {
				t.Fatalf("round %d has winners %v, want one", round, won)
			}
			last = won[0]
		}
		if n := len(read(t, logs[0], "s")); n != 50 {
			t.Errorf("%d records after 50 rounds", n)
		}
	})
}

// Servers come and go while many append: what was acknowledged is there, once,
// and in its place.
func TestAppendSurvivesTheLeader(t *testing.T) {
	const writers, facts = 16, 60
	onEach(t, func(t *testing.T, b *natstest.Bus, js jetstream.JetStream) {
		l := open(t, js, func(o *eventlog.Options) { o.Answer = 300e6 })
		progress := make(chan struct{}, writers*facts)
		acked := make([][]uint64, writers)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				last := uint64(0)
				for i := range facts {
					seq, err := l.Append(natstest.Context(t), message(events.SessionID(fmt.Sprintf("w%d", w)), fmt.Sprint(i)), last, "")
					if err != nil {
						t.Errorf("writer %d, fact %d: %v", w, i, err)
						return
					}
					last = seq
					acked[w] = append(acked[w], seq)
					progress <- struct{}{}
				}
			})
		}
		for range 4 {
			steps(t, progress, writers*facts/6)
			if b.Size() == 1 {
				b.Restart()
			} else {
				b.LeaderStepDown(js, "EVENTS")
			}
		}
		all.Wait()
		for w := range writers {
			recs := read(t, l, events.SessionID(fmt.Sprintf("w%d", w)))
			if len(recs) != facts {
				t.Fatalf("writer %d has %d records, want %d", w, len(recs), facts)
			}
			for i, r := range recs {
				if r.Seq != acked[w][i] || r.Fact.(events.MessageAdded).Text != fmt.Sprint(i) {
					t.Fatalf("writer %d, record %d: sequence %d is %v, want %d", w, i, r.Seq, r.Fact, acked[w][i])
				}
			}
		}
	})
}

func TestTooLargeIsRefusedBeforeItIsSent(t *testing.T) {
	big := func(n int) events.Fact { return message("s", strings.Repeat("x", n)) }
	for _, c := range []struct {
		name   string
		fact   events.Fact
		server func(*server.Options)
		stream int32
	}{
		{"body", big(events.MaxFact), func(*server.Options) {}, -1},
		{"stream", big(4000), func(*server.Options) {}, 4096},
		{"payload", big(4000), func(o *server.Options) { o.MaxPayload = 4096; o.MaxPending = 1 << 20 }, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := natstest.Server(t, c.server)
			js := b.JetStream(t)
			cfg := natstest.StreamConfig("EVENTS", "evt.>", 1)
			cfg.MaxMsgSize = c.stream
			natstest.Stream(t, js, cfg)
			l := open(t, js)
			sent := js.Conn().Stats().OutMsgs
			if _, err := l.Append(natstest.Context(t), c.fact, 0, ""); !errors.Is(err, events.ErrTooLarge) {
				t.Fatalf("%v, want %v", err, events.ErrTooLarge)
			}
			if now := js.Conn().Stats().OutMsgs; now != sent {
				t.Errorf("%d messages were sent", now-sent)
			}
			appendTo(t, l, "s", strings.Repeat("x", 1000), 0)
		})
	}
}

func TestAppendRefusesWhatIsNoFact(t *testing.T) {
	l := open(t, streams(t))
	for _, f := range []events.Fact{nil, message("two words", "x"), message("a.b", "x"), message("*", "x"), message("", "x")} {
		if seq, err := l.Append(natstest.Context(t), f, 0, ""); err == nil {
			t.Errorf("%#v was stored at %d", f, seq)
		}
	}
	if last, err := l.Last(natstest.Context(t)); err != nil || last != 0 {
		t.Errorf("last sequence is %d (%v), want 0", last, err)
	}
}

func TestTheEnvelopeNamesCauseAndSource(t *testing.T) {
	l := open(t, streams(t), func(o *eventlog.Options) { o.Source = "tool-worker/w1" })
	first, err := l.Append(natstest.Context(t), message("s", "one"), 0, "cause of all")
	if err != nil {
		t.Fatal(err)
	}
	h := read(t, l, "s")[0].Header
	for name, want := range map[string]string{
		events.HeaderID: "s.session.main+0", events.HeaderSource: "/correx/tool-worker/w1", events.HeaderCausation: "cause%20of%20all",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if h.Get("Nats-Msg-Id") != "" {
		t.Error("a fact carries Nats-Msg-Id, whose value a stranger could take first")
	}
	appendTo(t, l, "s", "two", first)
	if recs := read(t, l, "s"); recs[0].Header.Get(eventlog.HeaderNonce) == recs[1].Header.Get(eventlog.HeaderNonce) {
		t.Error("two appends have one nonce")
	}
}

func TestDeniedSaysSo(t *testing.T) {
	b := natstest.Server(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "p"},
			{Username: "few", Password: "p", Permissions: &server.Permissions{Publish: &server.SubjectPermission{
				Allow: []string{"evt.mine.>", "$JS.API.STREAM.INFO.EVENTS"},
			}}},
		}
	})
	natstest.Stream(t, natstest.JetStream(t, b.Connect(t, nats.UserInfo("all", "p"))), natstest.StreamConfig("EVENTS", "evt.>", 1))
	few := natstest.JetStream(t, b.Connect(t, nats.UserInfo("few", "p")))
	l := open(t, few, func(o *eventlog.Options) { o.Answer = 100e6 })
	appendTo(t, l, "mine", "x", 0)
	ctx := natstest.Context(t)
	_, err := l.Append(ctx, message("theirs", "x"), 0, "")
	if !errors.Is(err, eventlog.ErrDenied) || !strings.Contains(err.Error(), "evt.theirs.session.main.message") {
		t.Errorf("append: %v, want %v with the subject", err, eventlog.ErrDenied)
	}
	if _, err := l.Read(ctx, sessionOf("mine")); !errors.Is(err, eventlog.ErrDenied) {
		t.Errorf("read: %v, want %v", err, eventlog.ErrDenied)
	}
	if err := l.Follow(ctx, "evt.>", 1, func(events.Record) error { return nil }); !errors.Is(err, eventlog.ErrDenied) {
		t.Errorf("follow: %v, want %v", err, eventlog.ErrDenied)
	}
	if ctx.Err() != nil {
		t.Error("it took until the context ended")
	}
}

func TestAnotherStreamsAnswerIsNoProof(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
	l := open(t, js)
	if err := js.DeleteStream(natstest.Context(t), "EVENTS"); err != nil {
		t.Fatal(err)
	}
	natstest.Stream(t, js, natstest.StreamConfig("STRANGER", "evt.>", 1))
	if seq, err := l.Append(natstest.Context(t), message("s", "x"), 0, ""); err == nil {
		t.Errorf("took the answer of another stream for sequence %d", seq)
	}
}

func TestAppendEndsWithItsContext(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
	l := open(t, js)
	b.Stop(0)
	b.Await("the client to notice", func() bool { return js.Conn().Status() == nats.RECONNECTING })
	ctx, cancel := context.WithTimeout(t.Context(), 50e6)
	defer cancel()
	_, err := l.Append(ctx, message("s", "x"), 0, "")
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, eventlog.ErrUnconfirmed) {
		t.Errorf("%v: nothing was ever sent, so nothing is unconfirmed", err)
	}
}

// streams makes EVENTS on a fresh server.
func streams(t testing.TB) jetstream.JetStream {
	t.Helper()
	js := natstest.Server(t).JetStream(t)
	natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
	return js
}
