package eventlog_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

// A cable is a network that can fail in the ways a real one does and a real one
// between two ends of the same test never would.
type cable struct {
	deaf  atomic.Bool // what the server says gets lost
	mute  atomic.Bool // what the client says gets lost
	gate  atomic.Pointer[chan struct{}]
	plugs atomic.Pointer[plug]
}

// A plug is one connection through a cable.
type plug struct {
	net.Conn
	c *cable
}

// Dial implements [nats.CustomDialer]. While the gate is shut it waits.
func (c *cable) Dial(network, address string) (net.Conn, error) {
	if gate := c.gate.Load(); gate != nil {
		<-*gate
	}
	conn, err := net.DialTimeout(network, address, natstest.Patience)
	if err != nil {
		return nil, err
	}
	p := &plug{conn, c}
	c.plugs.Store(p)
	return p, nil
}

func (p *plug) Read(b []byte) (int, error) {
	for {
		n, err := p.Conn.Read(b)
		if err != nil || !p.c.deaf.Load() {
			return n, err
		}
	}
}

func (p *plug) Write(b []byte) (int, error) {
	if p.c.mute.Load() {
		return len(b), nil
	}
	return p.Conn.Write(b)
}

// cut breaks the connection; the next one is sound.
func (c *cable) cut() {
	c.plugs.Load().Close()
	c.deaf.Store(false)
	c.mute.Store(false)
}

// shut keeps the client from coming back until the function it returns is called.
func (c *cable) shut() (open func()) {
	gate := make(chan struct{})
	c.gate.Store(&gate)
	return func() { c.gate.Store(nil); close(gate) }
}

// The answer to a publish gets lost: what became of it is found out, and the
// fact is stored once.
func TestLostAnswer(t *testing.T) {
	onEach(t, func(t *testing.T, b *natstest.Bus, js jetstream.JetStream) {
		witness := open(t, js)
		c := &cable{}
		l := open(t, natstest.JetStream(t, b.Connect(t, nats.SetCustomDialer(c))))
		first := appendTo(t, l, "s", "one", 0)

		c.deaf.Store(true)
		type result struct {
			seq uint64
			err error
		}
		done := make(chan result, 1)
		go func() {
			seq, err := l.Append(natstest.Context(t), message("s", "two"), first, "")
			done <- result{seq, err}
		}()
		b.Await("the fact to be stored", func() bool { return len(read(t, witness, "s")) == 2 })
		third := appendTo(t, witness, "s", "three", read(t, witness, "s")[1].Seq) // life goes on meanwhile
		c.cut()
		r := <-done
		recs := read(t, witness, "s")
		if r.err != nil || r.seq != recs[1].Seq {
			t.Errorf("append: %d, %v; want %d", r.seq, r.err, recs[1].Seq)
		}
		if len(recs) != 3 || recs[2].Seq != third {
			t.Errorf("%d records, want 3", len(recs))
		}
	})
}

// The publish itself gets lost, and somebody with the very same thing to say is
// faster: that is a conflict, and no confirmation.
func TestLostPublishAgainstATwin(t *testing.T) {
	b := natstest.Server(t)
	natstest.Stream(t, b.JetStream(t), natstest.StreamConfig("EVENTS", "evt.>", 1))
	twin := open(t, b.JetStream(t))
	c := &cable{}
	l := open(t, natstest.JetStream(t, b.Connect(t, nats.SetCustomDialer(c))))
	c.mute.Store(true)
	done := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		close(began)
		_, err := l.Append(natstest.Context(t), message("s", "same"), 0, "")
		done <- err
	}()
	<-began
	appendTo(t, twin, "s", "same", 0)
	c.cut()
	if err := <-done; !errors.Is(err, eventlog.ErrConflict) || errors.Is(err, eventlog.ErrUnconfirmed) {
		t.Errorf("%v, want a conflict", err)
	}
	if n := len(read(t, twin, "s")); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

func TestUnconfirmedWhenTheContextEnds(t *testing.T) {
	b := natstest.Server(t)
	natstest.Stream(t, b.JetStream(t), natstest.StreamConfig("EVENTS", "evt.>", 1))
	witness := open(t, b.JetStream(t))
	c := &cable{}
	l := open(t, natstest.JetStream(t, b.Connect(t, nats.SetCustomDialer(c))))
	c.deaf.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := l.Append(ctx, message("s", "x"), 0, "")
	if !errors.Is(err, eventlog.ErrUnconfirmed) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want %v", err, eventlog.ErrUnconfirmed)
	}
	b.Await("the fact", func() bool { return len(read(t, witness, "s")) == 1 })
	c.cut()
}

// What stands behind the expected record and merely looks like the lost fact is
// another's: the nonce tells.
func TestForgedTwinIsNotMine(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
	f := message("s", "same")
	subject, h, data, err := events.Encode(f, events.Source{Name: "kernel"}, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	publish(t, js, subject, h, data)
	if _, err := open(t, js).Append(natstest.Context(t), f, 0, ""); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("%v, want a conflict", err)
	}
}
