package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/natstest"
	"correx/internal/worker"
)

const ackWait = 300 * time.Millisecond

// A shop is a bus with topics, and workers on it.
type shop struct {
	*testing.T
	ctx context.Context
	bus *natstest.Bus
	topics
	ackWait time.Duration
}

func newShop(t *testing.T, topics ...string) *shop { return patientShop(t, ackWait, topics...) }

// patientShop is a shop whose server waits so long for an ack. A test in which
// nothing may be delivered twice takes one that no busy machine lets run out.
func patientShop(t *testing.T, wait time.Duration, topics ...string) *shop {
	t.Parallel()
	bus := natstest.Server(t)
	s := &shop{T: t, ctx: natstest.Context(t), bus: bus, topics: newTopics(t, bus, wait), ackWait: wait}
	for _, topic := range topics {
		s.make(topic)
	}
	return s
}

func (s *shop) make(topic string) {
	s.Helper()
	if err := s.create(s.ctx, topic); err != nil {
		s.Fatal(err)
	}
}

func (s *shop) publish(topic string, n int) {
	s.Helper()
	for i := range n {
		m := message.NewMessage(fmt.Sprintf("%s-%d", topic, i), nil)
		m.SetContext(s.ctx)
		if err := s.Publish(topic, m); err != nil {
			s.Fatal(err)
		}
	}
}

// work runs a worker until stop, which returns what Run returned.
func (s *shop) work(slots int, handlers map[string]worker.Handler, change ...func(*worker.SubscriberConfig)) (stop func() error) {
	s.Helper()
	cfg := config(s.bus.JetStream(s), slots, s.ackWait)
	for _, c := range change {
		c(&cfg)
	}
	w, err := worker.New(cfg)
	if err != nil {
		s.Fatal(err)
	}
	for topic, h := range handlers {
		w.Handle(topic, h)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	s.Cleanup(func() { _ = stop() })
	return stop
}

func (s *shop) settled(topic string) {
	s.Helper()
	s.bus.Await(topic+" to be settled", func() bool {
		i := s.info(topic)
		return i.NumPending == 0 && i.NumAckPending == 0
	})
}

func (s *shop) info(topic string) *jetstream.ConsumerInfo {
	s.Helper()
	c, err := s.js.Consumer(s.ctx, stream, topic)
	if err != nil {
		s.Fatal(err)
	}
	return c.CachedInfo()
}

// take waits for a delivery.
func (s *shop) take(deliveries <-chan worker.Delivery) worker.Delivery {
	s.Helper()
	select {
	case d := <-deliveries:
		return d
	case <-s.ctx.Done():
		s.Fatal("nothing is delivered")
		return worker.Delivery{}
	}
}

// first settles the first delivery as o says, and acks those that follow.
func first(o worker.Outcome, seen chan<- worker.Delivery) worker.Handler {
	var once sync.Once
	return func(_ context.Context, d worker.Delivery) worker.Outcome {
		out := worker.Ack()
		once.Do(func() { out = o })
		seen <- d
		return out
	}
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		outcome worker.Outcome
		again   bool          // is it delivered again
		after   time.Duration // and not before
	}{
		{worker.Ack(), false, 0},
		{worker.Term("never"), false, 0},
		{worker.Drop(), true, ackWait * 8 / 10},
		{worker.Keep(), true, ackWait * 8 / 10},
		{worker.Nak(0), true, 0},
		{worker.Nak(ackWait / 2), true, ackWait * 4 / 10},
	} {
		t.Run(c.outcome.String(), func(t *testing.T) {
			s := newShop(t, "a")
			seen := make(chan worker.Delivery, 9)
			s.publish("a", 1)
			s.work(1, map[string]worker.Handler{"a": first(c.outcome, seen)})
			if d := s.take(seen); d.Subject != "t.a" || d.Seq != 1 || d.Consumer != "a" || d.Count != 1 {
				t.Errorf("delivery is %+v", d)
			}
			began := time.Now()
			if c.again {
				if d := s.take(seen); d.Count != 2 || time.Since(began) < c.after {
					t.Errorf("delivered again as number %d after %s", d.Count, time.Since(began))
				}
			}
			s.settled("a")
			if len(seen) != 0 {
				t.Error("delivered once too often")
			}
		})
	}
}

// The handler works until there have been more heartbeats than go into an ack
// wait: then none but they can have kept the message.
func TestHeartbeatsKeepALongHandlersMessage(t *testing.T) {
	s := patientShop(t, 3*time.Second, "a")
	beats := make(chan *nats.Msg, 99)
	if _, err := s.bus.Connect(t).ChanSubscribe("$JS.ACK.>", beats); err != nil {
		t.Fatal(err)
	}
	seen := make(chan worker.Delivery, 9)
	s.publish("a", 1)
	s.work(4, map[string]worker.Handler{"a": func(_ context.Context, d worker.Delivery) worker.Outcome {
		seen <- d
		for range 5 {
			select {
			case m := <-beats:
				if string(m.Data) != "+WPI" {
					t.Errorf("%q in place of a heartbeat", m.Data)
				}
			case <-s.ctx.Done():
				t.Error("no heartbeat while the handler works")
			}
		}
		return worker.Ack()
	}})
	s.take(seen)
	s.settled("a")
	if len(seen) != 0 {
		t.Error("delivered again while its handler worked")
	}
}

func TestAPanicDropsTheDelivery(t *testing.T) {
	s := newShop(t, "a")
	seen := make(chan worker.Delivery, 9)
	var once sync.Once
	s.publish("a", 1)
	s.work(1, map[string]worker.Handler{"a": func(_ context.Context, d worker.Delivery) worker.Outcome {
		seen <- d
		once.Do(func() { panic("as asked") })
		return worker.Ack()
	}})
	s.take(seen)
	began := time.Now()
	if d := s.take(seen); d.Count != 2 || time.Since(began) < ackWait*8/10 {
		t.Errorf("delivered again as number %d after %s", d.Count, time.Since(began))
	}
	s.settled("a")
}

func TestConsumersShareTheSlots(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	s := patientShop(t, 30*time.Second, names...)
	const each, slots = 25, 2
	for _, n := range names {
		s.publish(n, each)
	}
	var mu sync.Mutex
	now, most, times := 0, 0, map[string]int{}
	handlers := map[string]worker.Handler{}
	for _, n := range names {
		handlers[n] = func(_ context.Context, d worker.Delivery) worker.Outcome {
			mu.Lock()
			now++
			most = max(most, now)
			times[fmt.Sprint(n, d.Seq)]++
			mu.Unlock()
			<-time.After(5 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			return worker.Ack()
		}
	}
	s.work(slots, handlers)
	for _, n := range names {
		s.settled(n)
	}
	mu.Lock()
	defer mu.Unlock()
	if most > slots || len(times) != each*len(names) {
		t.Errorf("%d handlers at a time, want at most %d; %d messages handled, want %d", most, slots, len(times), each*len(names))
	}
	for m, n := range times {
		if n != 1 {
			t.Errorf("message %s was handled %d times", m, n)
		}
	}
}

func TestABusyWorkerLeavesMessagesToOthers(t *testing.T) {
	s := newShop(t, "a", "b")
	busy, goOn := make(chan worker.Delivery, 9), make(chan struct{})
	s.publish("a", 1)
	stop := s.work(1, map[string]worker.Handler{
		"a": func(_ context.Context, d worker.Delivery) worker.Outcome {
			busy <- d
			<-goOn
			return worker.Ack()
		},
		"b": func(_ context.Context, d worker.Delivery) worker.Outcome { busy <- d; return worker.Ack() },
	})
	s.take(busy)
	seen := make(chan worker.Delivery, 9)
	s.work(1, map[string]worker.Handler{"b": func(_ context.Context, d worker.Delivery) worker.Outcome { seen <- d; return worker.Ack() }})
	s.publish("b", 5)
	s.settled("b")
	if len(seen) != 5 || len(busy) != 0 {
		t.Errorf("the idle worker handled %d of 5, the busy one %d", len(seen), len(busy))
	}
	close(goOn)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestAConsumerThatIsMadeLater(t *testing.T) {
	s := newShop(t)
	seen := make(chan worker.Delivery, 9)
	s.work(1, map[string]worker.Handler{"a": func(_ context.Context, d worker.Delivery) worker.Outcome { seen <- d; return worker.Ack() }})
	s.publish("a", 1)
	s.make("a")
	s.take(seen)
	s.settled("a")
}

func TestAConsumerThatIsMadeAgain(t *testing.T) {
	s := newShop(t, "a")
	seen := make(chan worker.Delivery, 99)
	s.publish("a", 1)
	s.work(1, map[string]worker.Handler{"a": func(_ context.Context, d worker.Delivery) worker.Outcome { seen <- d; return worker.Ack() }})
	s.take(seen)
	if err := s.js.DeleteConsumer(s.ctx, stream, "a"); err != nil {
		t.Fatal(err)
	}
	s.make("a")
	s.take(seen) // from the start
	s.settled("a")
}

func TestAServerThatRestarts(t *testing.T) {
	s := newShop(t, "a")
	seen := make(chan worker.Delivery, 99)
	s.publish("a", 1)
	s.work(2, map[string]worker.Handler{"a": func(_ context.Context, d worker.Delivery) worker.Outcome { seen <- d; return worker.Ack() }})
	s.take(seen)
	s.bus.Restart()
	s.bus.Await("the connection to come back", func() bool {
		return s.Publish("a", message.NewMessage("later", nil)) == nil
	})
	for s.take(seen).Seq < 2 { // the first may come again
	}
	s.settled("a")
}

func TestStop_WaitsForHandlers(t *testing.T) {
	s := newShop(t, "a")
	seen, goOn := make(chan worker.Delivery, 9), make(chan struct{})
	s.publish("a", 3)
	stop := s.work(1, map[string]worker.Handler{"a": func(ctx context.Context, d worker.Delivery) worker.Outcome {
		seen <- d
		<-goOn
		if ctx.Err() != nil {
			return worker.Term("hurried for nothing")
		}
		return worker.Ack()
	}}, func(c *worker.SubscriberConfig) { c.Drain = time.Minute })
	s.take(seen)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	select {
	case err := <-stopped:
		t.Fatalf("stopped while a handler worked: %v", err)
	case <-time.After(ackWait):
	}
	close(goOn)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	s.bus.Await("the ack", func() bool { return s.info("a").NumAckPending == 0 })
	if i := s.info("a"); i.NumPending != 2 || len(seen) != 0 {
		t.Errorf("%d pending, %d more handled", i.NumPending, len(seen))
	}
}

func TestStop_HurriesHandlersThatOutlastTheDrain(t *testing.T) {
	s := newShop(t, "a")
	seen := make(chan worker.Delivery, 9)
	s.publish("a", 1)
	stop := s.work(1, map[string]worker.Handler{"a": func(ctx context.Context, d worker.Delivery) worker.Outcome {
		seen <- d
		<-ctx.Done()
		return worker.Ack()
	}}, func(c *worker.SubscriberConfig) { c.Drain, c.Grace = 20*time.Millisecond, time.Minute })
	s.take(seen)
	if err := stop(); err != nil {
		t.Error(err)
	}
	s.settled("a")
}

func TestStop_SaysWhoStillWorks(t *testing.T) {
	s := newShop(t, "a")
	seen, goOn := make(chan worker.Delivery, 9), make(chan struct{})
	defer close(goOn)
	s.publish("a", 1)
	stop := s.work(1, map[string]worker.Handler{"a": func(_ context.Context, d worker.Delivery) worker.Outcome {
		seen <- d
		<-goOn
		return worker.Ack()
	}}, func(c *worker.SubscriberConfig) { c.Drain, c.Grace = 20*time.Millisecond, 20*time.Millisecond })
	s.take(seen)
	if err := stop(); !errors.Is(err, worker.ErrStillWorking) {
		t.Errorf("stop returns %v", err)
	}
}

func TestConfigFaultsAreNamed(t *testing.T) {
	if _, err := worker.New(worker.SubscriberConfig{}); err == nil {
		t.Error("a subscriber without anything")
	}
	s := newShop(t)
	if _, err := worker.New(worker.SubscriberConfig{JetStream: s.js, Logger: config(s.js, 1, ackWait).Logger}); err == nil {
		t.Error("a subscriber without an ack wait")
	}
}
