package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"correx/pkg/events"
)

// A Handler works on one delivery and says how it is settled. Ctx is done when
// the worker has no more time to wait; a handler then returns soon. A handler
// that panics has its delivery dropped.
type Handler func(ctx context.Context, d Delivery) Outcome

// A Worker is a router over one [Subscriber].
type Worker struct {
	sub    *Subscriber
	router *message.Router
	logger *slog.Logger
}

// New returns a worker without handlers.
func New(cfg SubscriberConfig) (*Worker, error) {
	sub, err := NewSubscriber(cfg)
	if err != nil {
		return nil, err
	}
	router, err := message.NewRouter(
		message.RouterConfig{CloseTimeout: 2 * (sub.cfg.Drain + sub.cfg.Grace)},
		watermill.NewSlogLogger(quiet(cfg.Logger)))
	if err != nil {
		return nil, fmt.Errorf("make router: %w", err)
	}
	w := &Worker{sub: sub, router: router, logger: cfg.Logger}
	router.AddMiddleware(correlate, w.dropFailed, middleware.Recoverer)
	return w, nil
}

// Handle has h work on the deliveries of a consumer. It is called before Run.
func (w *Worker) Handle(consumer string, h Handler) {
	w.router.AddConsumerHandler(consumer, consumer, w.sub, func(m *message.Message) error {
		d, ok := DeliveryOf(m)
		if !ok {
			return fmt.Errorf("message %s was not delivered by a worker's subscriber", m.UUID)
		}
		Choose(m, h(m.Context(), d))
		return nil
	})
}

// Run handles messages until ctx is done, then waits for the handlers still at
// work, at most Drain. It returns nil after a clean stop.
func (w *Worker) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- w.router.Run(context.WithoutCancel(ctx)) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	select { // a router that is closed while it begins waits for itself
	case err := <-failed:
		return err
	case <-w.router.Running():
	}
	rerr := w.router.Close()
	if err := w.sub.Close(); err != nil {
		return err // says more than the router's time-out
	}
	return errors.Join(rerr, <-failed)
}

// correlate carries a message's correlation id to where Watermill's own parts
// look for it.
func correlate(next message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) ([]*message.Message, error) {
		middleware.SetCorrelationID(m.Metadata.Get(events.HeaderCorrelation), m)
		return next(m)
	}
}

// dropFailed makes a handler's error, or its panic, a drop: it proves nothing
// about what was done, so that only the log can say what comes next.
func (w *Worker) dropFailed(next message.HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) ([]*message.Message, error) {
		out, err := next(m)
		if err != nil {
			d, _ := DeliveryOf(m)
			w.logger.Error("handler failed; the delivery is dropped", slog.String("subject", d.Subject),
				slog.Uint64("seq", d.Seq), slog.Any("error", err))
			Choose(m, Drop())
		}
		return out, nil
	}
}
