package worker

import (
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go/jetstream"

	"correx/pkg/events"
)

// A Delivery is what a consumer delivered. Seq is its sequence in the stream;
// Count is a hint, and proves nothing.
type Delivery struct {
	Consumer string
	Subject  string
	Seq      uint64
	Count    uint64
	Header   events.Header
	Data     []byte
}

// An Outcome is how a delivery is settled. The zero Outcome is [Ack].
type Outcome struct {
	verb   verb
	delay  time.Duration
	reason string
}

type verb uint8

const (
	ack verb = iota
	drop
	keep
	term
	nak
)

// Ack: it is done, for ever. The answer is not waited for: a lost ack only
// delivers again what the log says is done.
func Ack() Outcome { return Outcome{verb: ack} }

// Drop: neither ack nor nak; it is delivered again after the ack wait.
func Drop() Outcome { return Outcome{verb: drop} }

// Keep: say once that it is being worked on, then as [Drop].
func Keep() Outcome { return Outcome{verb: keep} }

// Term: it will never be worked on, and why.
func Term(reason string) Outcome { return Outcome{verb: term, reason: reason} }

// Nak: deliver it again after delay, to whoever asks first.
func Nak(delay time.Duration) Outcome { return Outcome{verb: nak, delay: delay} }

func (o Outcome) String() string { return [...]string{"ack", "drop", "keep", "term", "nak"}[o.verb] }

// chosen is where a handler leaves its outcome: in the context of the message.
// It is written before the message is acked or nacked, and read after.
type chosen struct {
	delivery Delivery
	outcome  Outcome
	set      bool
}

type chosenKey struct{}

// DeliveryOf returns the delivery that a message of a [Subscriber] stands for.
func DeliveryOf(m *message.Message) (Delivery, bool) {
	c, ok := m.Context().Value(chosenKey{}).(*chosen)
	if !ok {
		return Delivery{}, false
	}
	return c.delivery, true
}

// Choose sets how m is settled once its handler has returned. Without it an
// acked message is [Ack] and a nacked one [Nak].
func Choose(m *message.Message, o Outcome) {
	if c, ok := m.Context().Value(chosenKey{}).(*chosen); ok {
		c.outcome, c.set = o, true
	}
}

func deliveryOf(consumer string, msg jetstream.Msg) (Delivery, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return Delivery{}, fmt.Errorf("read where %s was delivered from: %w", msg.Subject(), err)
	}
	return Delivery{
		Consumer: consumer, Subject: msg.Subject(), Seq: meta.Sequence.Stream, Count: meta.NumDelivered,
		Header: events.Header(msg.Headers()), Data: msg.Data(),
	}, nil
}
