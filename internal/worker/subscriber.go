package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrStillWorking is returned by Close when handlers do not come to an end.
var ErrStillWorking = errors.New("handlers are still at work")

// SubscriberConfig is what a [Subscriber] works on. Fields without a default
// are required.
type SubscriberConfig struct {
	JetStream jetstream.JetStream
	Stream    string        // default EVENTS
	Slots     int           // messages in the hands of handlers, over all topics; default 1
	AckWait   time.Duration // of the consumers
	Drain     time.Duration // how long Close waits for handlers; default 30 s
	Grace     time.Duration // how long it then waits for those that were told to stop; default 12 s
	Logger    *slog.Logger
}

func (c SubscriberConfig) withDefaults() (SubscriberConfig, error) {
	if c.JetStream == nil || c.Logger == nil {
		return c, errors.New("subscriber: JetStream and logger are required")
	}
	if c.AckWait <= 0 {
		return c, fmt.Errorf("subscriber: ack wait is %s; it must be that of the consumers", c.AckWait)
	}
	if c.Stream == "" {
		c.Stream = "EVENTS"
	}
	if c.Slots <= 0 {
		c.Slots = 1
	}
	if c.Drain <= 0 {
		c.Drain = 30 * time.Second
	}
	if c.Grace <= 0 {
		c.Grace = 12 * time.Second
	}
	return c, nil
}

// A Subscriber delivers the messages of durable pull consumers. A topic is the
// name of a consumer; until it exists the subscriber waits for it.
type Subscriber struct {
	cfg   SubscriberConfig
	slots *slots

	stop     context.Context // done: no more pulls
	stopNow  context.CancelFunc
	hurry    context.Context // done: handlers are to come to an end
	hurryNow context.CancelFunc

	close func() error

	mu       sync.Mutex
	closed   bool
	pulling  sync.WaitGroup
	handling sync.WaitGroup
}

var _ message.Subscriber = (*Subscriber)(nil)

// NewSubscriber returns a subscriber that pulls nothing yet.
func NewSubscriber(cfg SubscriberConfig) (*Subscriber, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Subscriber{cfg: cfg, slots: newSlots(cfg.Slots)}
	s.stop, s.stopNow = context.WithCancel(context.Background())
	s.hurry, s.hurryNow = context.WithCancel(context.Background())
	s.close = sync.OnceValue(s.shut)
	return s, nil
}

// Subscribe implements [message.Subscriber]. The channel is closed when ctx is
// done or the subscriber is closed; messages that were handed out by then stay
// valid, and their contexts are done only when they are settled or Close runs
// out of patience.
func (s *Subscriber) Subscribe(ctx context.Context, consumer string) (<-chan *message.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("subscribe: the subscriber is closed")
	}
	out := make(chan *message.Message)
	pctx, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(s.stop, cancel)
	s.pulling.Go(func() {
		defer close(out)
		defer cancel()
		defer unhook()
		s.pull(pctx, consumer, out)
	})
	return out, nil
}

// Close stops pulling, gives back what no handler has begun, and waits for the
// handlers at work: at most Drain, then their contexts are done, then at most
// Grace. A second call returns what the first one did.
func (s *Subscriber) Close() error { return s.close() }

func (s *Subscriber) shut() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stopNow()
	s.pulling.Wait()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.handling.Wait()
	}()
	if within(done, s.cfg.Drain) {
		return s.flush()
	}
	s.hurryNow()
	if within(done, s.cfg.Grace) {
		return s.flush()
	}
	return fmt.Errorf("close subscriber: %w %s after they were told to stop", ErrStillWorking, s.cfg.Grace)
}

// flush sees the last acks off. One that is lost costs a delivery, no more.
func (s *Subscriber) flush() error {
	if err := s.cfg.JetStream.Conn().FlushTimeout(time.Second); err != nil {
		s.cfg.Logger.Debug("flush acks", slog.Any("error", err))
	}
	return nil
}

func within(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
