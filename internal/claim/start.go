package claim

import (
	"context"
	"fmt"
	"time"

	"correx/pkg/events"
)

// tries is how often something is published again that the log neither took nor
// refused, before the delivery is dropped.
const tries = 3

// claim is clause 2: the permission holds and nobody was faster yet.
func (c *Claims) claim(ctx context.Context, j Job, h *hold, s State) (Outcome, error) {
	if end := j.Rules.Check(s, c.now()); end != nil {
		return c.refuse(ctx, j, s, end)
	}
	return c.start(ctx, j, h, s, 1)
}

// refuse ends what must not be claimed.
func (c *Claims) refuse(ctx context.Context, j Job, s State, end events.Fact) (Outcome, error) {
	c.cfg.Logger.Warn("refused before the claim", "aggregate", s.Aggregate.String(), "fact", string(end.FactName()))
	return c.end(ctx, j, s, end, s.cause(s.Ready))
}

// end appends an end for something that is not ours, as long as nothing has
// happened since s was read.
func (c *Claims) end(ctx context.Context, j Job, s State, end events.Fact, cause string) (Outcome, error) {
	var w wait
	for i := 0; ; i++ {
		_, err := c.cfg.Log.Append(ctx, end, s.Last, cause)
		if err == nil {
			return Ack, nil
		}
		now, rerr := c.readUntil(ctx, j, s.Aggregate)
		switch {
		case rerr != nil:
			return Drop, rerr
		case now.Phase == Ended:
			return Ack, nil
		case now.Last != s.Last && now.Phase == Ready && s.Phase == Ready:
			s = now
		case now.Last != s.Last:
			return Drop, nil // something happened: the next delivery decides anew
		case i+1 == tries || w.pause(ctx) != nil:
			return Drop, fmt.Errorf("append %s to %s: %w", end.FactName(), s.Aggregate, err)
		}
	}
}

// start appends started and, if the log takes it, does the work.
func (c *Claims) start(ctx context.Context, j Job, h *hold, s State, attempt int) (Outcome, error) {
	mine := events.Claim{Worker: c.cfg.Worker, Boot: c.cfg.Boot, Nonce: c.nonce(), Attempt: attempt}
	h.claims() // before the append: whoever reads it and asks must hear yes
	f, now, err := c.append(ctx, j, s, mine)
	switch {
	case err != nil:
		return Drop, err
	case f == 0 && now.Phase == Ended:
		return Ack, nil
	case f == 0 && s.partial: // what followed long ago looks like somebody who was faster
		h.yields()
		return c.decide(ctx, j, h, Delivery{Aggregate: s.Aggregate, Seq: s.Ready}, now)
	case f == 0:
		return Drop, nil // somebody was faster: neither ack nor nak
	}
	h.owns(f)
	s = now
	s.Phase, s.Claim, s.Started, s.Last = Running, mine, f, max(s.Last, f)
	return c.own(ctx, j, h, Task{State: s, Claim: mine, Started: f})
}

// append puts my started on the log and returns its sequence, or 0 and what the
// log says instead. A positive answer is proof; only an error is read after.
func (c *Claims) append(ctx context.Context, j Job, s State, mine events.Claim) (uint64, State, error) {
	var w wait
	for i := 0; ; i++ {
		f, err := c.cfg.Log.Append(ctx, j.Rules.Started(s, mine), s.Last, s.cause(s.Ready))
		if err == nil {
			s.startedID = events.FactID(s.Aggregate, s.Last)
			return f, s, nil
		}
		now, rerr := c.readUntil(ctx, j, s.Aggregate)
		switch {
		case rerr != nil:
			return 0, now, rerr
		case now.Claim.Nonce == mine.Nonce && now.owned(now.fence()):
			return now.Started, now, nil // the answer was lost, not the fact
		case now.Last != s.Last && now.Phase == Ready && s.Phase == Ready:
			now.partial, s = s.partial, now // what followed does not hold: nobody was faster
		case now.Last != s.Last:
			return 0, now, nil
		case i+1 == tries || w.pause(ctx) != nil:
			return 0, now, fmt.Errorf("append started to %s: %w", s.Aggregate, err)
		}
	}
}

// takeover is clause 4: somebody else's started.
func (c *Claims) takeover(ctx context.Context, j Job, h *hold, s State) (Outcome, error) {
	if !c.lost(ctx, s) {
		return Drop, nil
	}
	c.cfg.Logger.Warn("worker lost", "worker", string(s.Claim.Worker), "aggregate", s.Aggregate.String(),
		"started", s.Started, "attempt", s.Claim.Attempt)
	if repeatable(j, s) {
		return c.start(ctx, j, h, s, s.Claim.Attempt+1)
	}
	end := j.Rules.Failed(s, Failure{
		Why: WorkerLost, Recoverable: true, Effects: events.EffectsUnknown,
		Reason: fmt.Sprintf("worker %s was lost: it did not answer for %s", s.Claim.Worker, c.cfg.AckWait),
		Fence:  events.Fence{Started: s.Started},
	})
	return c.end(ctx, j, s, end, s.cause(s.Started))
}

// again is what a worker does about a claim of its own that it does not hold,
// and that its journal does not know: it died, or gave its started up, before
// anything was touched.
func (c *Claims) again(ctx context.Context, j Job, h *hold, s State) (Outcome, error) {
	if repeatable(j, s) {
		return c.start(ctx, j, h, s, s.Claim.Attempt+1)
	}
	end := j.Rules.Failed(s, Failure{
		Why: Restarted, Recoverable: true, Effects: events.EffectsNone,
		Reason: fmt.Sprintf("worker %s stopped before it began; nothing was touched", s.Claim.Worker),
		Fence:  s.fence(),
	})
	return c.end(ctx, j, s, end, s.cause(s.Started))
}

func repeatable(j Job, s State) bool {
	return j.Idempotent && j.Journal == nil && s.Phase == Running && s.Claim.Attempt < MaxAttempts
}

// lost asks the owner for a whole ack wait, and once more at its end. One yes is
// enough; silence and denial count alike, for a worker that was restarted denies.
func (c *Claims) lost(ctx context.Context, s State) bool {
	q := Question{Session: s.Aggregate.Session, Kind: s.Aggregate.Kind, ID: s.Aggregate.ID, Started: s.Started}
	until := time.Now().Add(c.cfg.AckWait)
	for last := false; ; last = !time.Now().Before(until) {
		next := time.NewTimer(c.cfg.AckWait / 3)
		actx, cancel := context.WithTimeout(ctx, c.cfg.AckWait/3)
		a, err := c.cfg.Ask.AskRunning(actx, s.Claim.Worker, q)
		cancel()
		if err == nil && a.Running {
			next.Stop()
			return false
		}
		if last {
			next.Stop()
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			next.Stop()
			return false
		case <-next.C:
		}
	}
}
