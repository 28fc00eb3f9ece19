package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/natstest"
	"correx/internal/worker"
	"correx/pkg/events"
)

const stream = "TESTS"

// topics makes a consumer for each topic, as the kernel does for workers, and
// publishes to it.
type topics struct {
	js      jetstream.JetStream
	ackWait time.Duration
}

func newTopics(t testing.TB, bus *natstest.Bus, ackWait time.Duration) topics {
	t.Helper()
	js := bus.JetStream(t)
	natstest.Stream(t, js, natstest.StreamConfig(stream, "t.>", bus.Size()))
	return topics{js, ackWait}
}

func (p topics) create(ctx context.Context, topic string) error {
	_, err := p.js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: topic, FilterSubject: "t." + topic, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: p.ackWait, MaxDeliver: -1, MaxAckPending: 1000,
	})
	return err
}

// Publish implements message.Publisher.
func (p topics) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		msg := &nats.Msg{Subject: "t." + topic, Header: nats.Header{events.HeaderID: {m.UUID}}, Data: m.Payload}
		for k, v := range m.Metadata {
			msg.Header[k] = []string{v}
		}
		if _, err := p.js.PublishMsg(m.Context(), msg); err != nil {
			return err
		}
	}
	return nil
}

// Close implements message.Publisher.
func (topics) Close() error { return nil }

// initialized is a Subscriber whose consumers the suite may have made.
type initialized struct {
	*worker.Subscriber
	topics
}

func (s initialized) SubscribeInitialize(topic string) error {
	return s.create(context.Background(), topic)
}

func (s initialized) Close() error { return s.Subscriber.Close() }

func config(js jetstream.JetStream, slots int, ackWait time.Duration) worker.SubscriberConfig {
	return worker.SubscriberConfig{
		JetStream: js, Stream: stream, Slots: slots, AckWait: ackWait,
		Drain: 100 * time.Millisecond, Grace: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}
}

// TestConformance is Watermill's own suite for subscribers, as far as it applies:
// consumer groups and reading from the start are for whoever makes the consumers.
func TestConformance(t *testing.T) {
	bus := natstest.Server(t)
	p := newTopics(t, bus, 2*time.Second)
	single := func(slots int) tests.PubSubConstructor {
		return func(t *testing.T) (message.Publisher, message.Subscriber) {
			s, err := worker.NewSubscriber(config(bus.JetStream(t), slots, p.ackWait))
			if err != nil {
				t.Fatal(err)
			}
			// The suite leaves messages unsettled when it closes; that they outlast
			// the patience of Close is no fault of the subscriber.
			return p, patient{initialized{s, p}}
		}
	}
	slots := map[string]int{"Topic": 2} // it reads one topic to its end before the other
	for name, test := range map[string]func(*testing.T, tests.TestContext, tests.PubSubConstructor){
		"PublishSubscribe":              tests.TestPublishSubscribe,
		"ConcurrentSubscribe":           tests.TestConcurrentSubscribe,
		"ConcurrentSubscribeManyTopics": tests.TestConcurrentSubscribeMultipleTopics,
		"ResendOnError":                 tests.TestResendOnError,
		"NoAck":                         tests.TestNoAck,
		"ContinueAfterSubscribeClose":   tests.TestContinueAfterSubscribeClose,
		"ConcurrentClose":               tests.TestConcurrentClose,
		"ContinueAfterErrors":           tests.TestContinueAfterErrors,
		"PublishSubscribeInOrder":       tests.TestPublishSubscribeInOrder,
		"PublisherClose":                tests.TestPublisherClose,
		"Topic":                         tests.TestTopic,
		"MessageCtx":                    tests.TestMessageCtx,
		"SubscribeCtx":                  tests.TestSubscribeCtx,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, tests.TestContext{TestID: tests.NewTestID(), Features: tests.Features{
				Persistent: true, GuaranteedOrder: true, GuaranteedOrderWithSingleSubscriber: true, ForceShort: true,
			}}, single(max(1, slots[name])))
		})
	}
}

// patient closes as the suite expects.
type patient struct{ initialized }

func (p patient) Close() error {
	err := p.initialized.Close()
	if errors.Is(err, worker.ErrStillWorking) {
		return nil
	}
	return err
}
