package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"correx/pkg/events"
)

// silence is how long a pull may hear nothing from the server before it is made
// anew: the consumer, or the connection, may have gone without a word.
const silence = 4 * time.Second

// pull delivers the messages of one consumer to out until ctx is done. Whatever
// goes wrong with the consumer or the connection, it begins again.
func (s *Subscriber) pull(ctx context.Context, consumer string, out chan<- *message.Message) {
	log := s.cfg.Logger.With(slog.String("consumer", consumer))
	var w wait
	for said := false; ctx.Err() == nil; w.pause(ctx) {
		cons, err := s.find(ctx, consumer, &w)
		switch {
		case err == nil:
			w, said = wait{}, false
			err = s.iterate(ctx, cons, consumer, out)
		case errors.Is(err, jetstream.ErrConsumerNotFound) && !said:
			said = true
			log.Debug("waiting for the consumer to be made")
			continue
		case errors.Is(err, jetstream.ErrConsumerNotFound):
			continue
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("consumer interrupted; trying again", slog.Any("error", err))
		}
	}
}

// find asks for a consumer. Whoever may not ask yet is not answered: the server
// learns only from the announcement what a worker may pull. So it is not waited
// for long at first.
func (s *Subscriber) find(ctx context.Context, consumer string, w *wait) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond+2*w.d)
	defer cancel()
	return s.cfg.JetStream.Consumer(ctx, s.cfg.Stream, consumer)
}

// maxPulls bounds how many pulls of one consumer wait at the server at one time.
// Each brings one message, so that none waits here for a slot while its ack wait
// runs; several of them hide the time that each takes there and back.
const maxPulls = 16

// iterate pulls until one of its pulls fails.
func (s *Subscriber) iterate(ctx context.Context, cons jetstream.Consumer, name string, out chan<- *message.Message) error {
	g, ctx := errgroup.WithContext(ctx)
	for range min(s.cfg.Slots, maxPulls) {
		g.Go(func() error { return s.one(ctx, cons, name, out) })
	}
	return g.Wait()
}

// one pulls one message at a time, while there is a free slot.
func (s *Subscriber) one(ctx context.Context, cons jetstream.Consumer, name string, out chan<- *message.Message) error {
	it, err := cons.Messages(jetstream.PullMaxMessages(1), jetstream.PullExpiry(30*time.Second), jetstream.PullHeartbeat(silence/2))
	if err != nil {
		return err
	}
	defer it.Stop()
	for {
		if err := s.slots.free(ctx); err != nil {
			return err
		}
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		s.deliver(ctx, name, msg, out)
	}
}

// deliver hands msg to whoever reads out. Several consumers share the slots, so
// that the last one may be gone by now; then msg waits a moment for the next,
// and goes back for others to take.
func (s *Subscriber) deliver(ctx context.Context, consumer string, msg jetstream.Msg, out chan<- *message.Message) {
	if !s.slots.take(ctx, min(s.cfg.AckWait/3, 250*time.Millisecond)) {
		s.giveBack(msg)
		return
	}
	d, err := deliveryOf(consumer, msg)
	if err != nil {
		s.slots.release()
		s.cfg.Logger.Error("unreadable delivery", slog.String("consumer", consumer), slog.Any("error", err))
		return
	}
	c := &chosen{delivery: d}
	mctx, cancel := context.WithCancel(context.WithoutCancel(context.WithValue(ctx, chosenKey{}, c)))
	wm := message.NewMessageWithContext(mctx, d.Header.Get(events.HeaderID), d.Data)
	for k := range d.Header {
		wm.Metadata.Set(k, d.Header.Get(k))
	}
	unhook := context.AfterFunc(s.hurry, cancel)
	end := func() { unhook(); cancel(); s.slots.release() }
	select {
	case out <- wm:
		s.handling.Go(func() { defer end(); s.watch(mctx, msg, wm, c) })
	case <-ctx.Done():
		s.giveBack(msg)
		end()
	}
}

func (s *Subscriber) giveBack(msg jetstream.Msg) {
	if err := msg.Nak(); err != nil {
		s.cfg.Logger.Debug("give a message back", slog.String("subject", msg.Subject()), slog.Any("error", err))
	}
}

// watch keeps msg alive until its handler has returned, then settles it.
func (s *Subscriber) watch(ctx context.Context, msg jetstream.Msg, wm *message.Message, c *chosen) {
	beat := time.NewTicker(s.cfg.AckWait / 3)
	defer beat.Stop()
	o := Ack()
	for working := true; working; {
		select {
		case <-wm.Acked():
			working = false
		case <-wm.Nacked():
			working, o = false, Nak(0)
		case <-beat.C:
			s.heartbeat(ctx, msg)
		}
	}
	if c.set {
		o = c.outcome
	}
	if err := s.settle(ctx, msg, o); err != nil {
		s.cfg.Logger.Warn("settle a delivery", slog.String("subject", c.delivery.Subject),
			slog.Uint64("seq", c.delivery.Seq), slog.String("outcome", o.String()), slog.Any("error", err))
	}
}

// heartbeat says that msg is being worked on, and has it confirmed: what is only
// published may go nowhere without anybody's knowing.
func (s *Subscriber) heartbeat(ctx context.Context, msg jetstream.Msg) {
	hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.AckWait/3)
	defer cancel()
	_, err := s.cfg.JetStream.Conn().RequestWithContext(hctx, msg.Reply(), []byte("+WPI"))
	if err != nil {
		s.cfg.Logger.Warn("heartbeat not confirmed; the message may be delivered again",
			slog.String("subject", msg.Subject()), slog.Any("error", err))
	}
}

// settle does to msg what o says.
func (s *Subscriber) settle(ctx context.Context, msg jetstream.Msg, o Outcome) error {
	switch o.verb {
	case ack:
		return msg.Ack()
	case keep:
		s.heartbeat(ctx, msg)
	case term:
		return msg.TermWithReason(o.reason)
	case nak:
		return msg.NakWithDelay(o.delay)
	}
	return nil
}

// A wait is a pause that doubles, from 20 ms to 2 s.
type wait struct{ d time.Duration }

func (w *wait) pause(ctx context.Context) {
	w.d = min(max(2*w.d, 20*time.Millisecond), 2*time.Second)
	t := time.NewTimer(w.d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
