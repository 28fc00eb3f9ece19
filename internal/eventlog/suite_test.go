package eventlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

// onEach runs a test on one server with one replica, and on three with three.
func onEach(t *testing.T, test func(t *testing.T, b *natstest.Bus, js jetstream.JetStream)) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("R%d", n), func(t *testing.T) {
			bus := natstest.Fleet(t, n)
			js := bus.JetStream(t)
			natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", n))
			test(t, bus, js)
		})
	}
}

// open opens the log; opts alter the options.
func open(t testing.TB, js jetstream.JetStream, opts ...func(*eventlog.Options)) *eventlog.Log {
	t.Helper()
	o := eventlog.Options{Source: "kernel", Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, opt := range opts {
		opt(&o)
	}
	l, err := eventlog.Open(natstest.Context(t), js, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func message(session events.SessionID, text string) events.MessageAdded {
	return events.MessageAdded{Ref: events.Ref{Session: session, ID: events.Main}, Role: events.RoleUser, Text: text}
}

func sessionOf(s events.SessionID) events.Aggregate {
	return events.Aggregate{Session: s, Kind: events.KindSession, ID: events.Main}
}

func appendTo(t testing.TB, l *eventlog.Log, s events.SessionID, text string, after uint64) uint64 {
	t.Helper()
	seq, err := l.Append(natstest.Context(t), message(s, text), after, "")
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// chain appends n messages to a session, one behind the other, and returns
// their sequences.
func chain(t testing.TB, l *eventlog.Log, s events.SessionID, n int) []uint64 {
	t.Helper()
	var seqs []uint64
	last := uint64(0)
	for i := range n {
		last = appendTo(t, l, s, fmt.Sprint(i), last)
		seqs = append(seqs, last)
	}
	return seqs
}

func read(t testing.TB, l *eventlog.Log, s events.SessionID) []events.Record {
	t.Helper()
	recs, err := l.Read(natstest.Context(t), sessionOf(s))
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// publish stores a message as anybody might, by no rules.
func publish(t testing.TB, js jetstream.JetStream, subject string, h events.Header, data []byte) uint64 {
	t.Helper()
	ack, err := js.PublishMsg(natstest.Context(t), &nats.Msg{Subject: subject, Header: nats.Header(h), Data: data})
	if err != nil {
		t.Fatal(err)
	}
	return ack.Sequence
}

// A following collects what a follower is given, and how it ended.
type following struct {
	got  chan events.Record
	done chan error
	stop context.CancelFunc
}

// follow starts a follower, which ends with the test at the latest.
func follow(t *testing.T, l *eventlog.Log, filter string, from uint64) *following {
	ctx, stop := context.WithCancel(t.Context())
	f := &following{got: make(chan events.Record, 1<<16), done: make(chan error, 1), stop: stop}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.done <- l.Follow(ctx, filter, from, func(r events.Record) error {
			f.got <- r
			return nil
		})
	}()
	t.Cleanup(func() { stop(); <-ended })
	return f
}

// next waits for the next record.
func (f *following) next(t testing.TB) events.Record {
	t.Helper()
	select {
	case r := <-f.got:
		return r
	case err := <-f.done:
		t.Fatalf("follower ended: %v", err)
	case <-natstest.Context(t).Done():
		t.Fatal("follower is silent")
	}
	panic("unreachable")
}

// end waits for the follower to end.
func (f *following) end(t testing.TB) error {
	t.Helper()
	select {
	case err := <-f.done:
		return err
	case <-natstest.Context(t).Done():
		t.Fatal("follower does not end")
		return nil
	}
}

// steps waits for n steps of writers that may fail instead.
func steps(t testing.TB, progress <-chan struct{}, n int) {
	t.Helper()
	ctx := natstest.Context(t)
	for range n {
		select {
		case <-progress:
		case <-ctx.Done():
			t.Fatal("the writers have stopped")
		}
	}
}
