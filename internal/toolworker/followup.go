package toolworker

import (
	"context"
	"fmt"
	"time"

	"correx/internal/session"
	"correx/internal/worker"
	"correx/pkg/events"
)

// passOn is how soon a follow-up that belongs to another worker is delivered
// again.
const passOn = 200 * time.Millisecond

// here lets h have the follow-ups of this worker's own runs. What a run left for
// its follow-up lies with the worker that ran it, so every other passes the
// delivery on, as long as the invocation is what h works on. If the right one
// never comes, the kernel ends the wait.
func (p *process) here(while session.ToolInvocationStatus, h worker.Handler) worker.Handler {
	return func(ctx context.Context, d worker.Delivery) worker.Outcome {
		ran, err := p.ranFirst(ctx, d.Subject, while)
		switch {
		case err != nil:
			worker.Alarm(p.logger, d, worker.Drop(), err)
			return worker.Drop()
		case ran != "" && ran != p.id:
			p.logger.Debug("follow-up is another worker's", "subject", d.Subject, "worker", string(ran))
			return worker.Nak(passOn)
		}
		return h(ctx, d)
	}
}

// ranFirst returns the worker that ran what an invocation follows; empty if the
// invocation is not what it was delivered for any more, or follows nothing.
func (p *process) ranFirst(ctx context.Context, subject string, while session.ToolInvocationStatus) (events.WorkerID, error) {
	a, _, _, err := events.ParseSubject(subject)
	if err != nil {
		return "", nil // the handler says so
	}
	i, err := p.read(ctx, a)
	if err != nil || i.Follows() == "" || i.Status() != while {
		return "", err
	}
	first, err := p.read(ctx, events.Aggregate{Session: a.Session, Kind: a.Kind, ID: string(i.Follows())})
	if err != nil || first.Started == nil {
		return "", err
	}
	return first.Started.Worker, nil
}

func (p *process) read(ctx context.Context, a events.Aggregate) (session.Invocation, error) {
	recs, err := p.log.Read(ctx, a)
	if err != nil {
		return session.Invocation{}, fmt.Errorf("read %s: %w", a, err)
	}
	return session.FoldInvocation(recs), nil
}
