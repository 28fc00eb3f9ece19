package toolworker

import (
	"context"

	"correx/internal/access"
	"correx/internal/claim"
	"correx/internal/session"
	"correx/internal/worker"
	"correx/pkg/events"
	"correx/pkg/tools"
)

// handle works until ctx is done and what runs then has ended.
func (p *process) handle(ctx context.Context) error {
	w, err := worker.New(worker.SubscriberConfig{
		JetStream: p.js, Slots: p.o.Concurrency, AckWait: p.o.AckWait, Drain: p.o.Drain, Logger: p.logger,
	})
	if err != nil {
		return err
	}
	previews := previewer{worker: p.id, log: p.log, executor: p.executor}
	for _, t := range p.registry.All() {
		token := events.Token(t.Name())
		approved, requested := p.approved(p.work.job(t)), p.requested(previews)
		if tools.FollowUpOnly(t) {
			approved, requested = p.here(session.Approved, approved), p.here(session.Requested, requested)
		}
		w.Handle(access.ToolDurable(token), approved)
		if _, ok := t.(tools.Previewer); ok {
			w.Handle(access.PreviewDurable(token), requested)
		}
	}
	return w.Run(ctx)
}

// approved takes deliveries of a tool's consumer through the claim protocol.
func (p *process) approved(j claim.Job) worker.Handler {
	judge := func(d worker.Delivery) events.Record { return p.log.Judge(d.Seq, d.Subject, d.Header, d.Data) }
	return worker.ByClaim(p.claims, j, judge, p.logger)
}

func (p *process) requested(v previewer) worker.Handler {
	return func(ctx context.Context, d worker.Delivery) worker.Outcome {
		o, err := v.handle(ctx, d)
		if err != nil {
			worker.Alarm(p.logger, d, o, err)
		}
		return o
	}
}
