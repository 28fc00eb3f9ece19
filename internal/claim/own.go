package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"correx/pkg/events"
)

// grace is how long the end of stopped work is still published.
const grace = 10 * time.Second

// own is clause 3: the claim is mine.
func (c *Claims) own(ctx context.Context, j Job, h *hold, t Task) (Outcome, error) {
	pub, cancel := c.publishing(ctx)
	defer cancel()
	s := t.State
	late, err := c.late(pub, s)
	if err != nil {
		return Drop, err
	}
	var end events.Fact
	if late {
		end = j.Rules.Failed(s, Failure{
			Why: ApprovalEnded, Recoverable: true, Effects: events.EffectsNone, Fence: t.Fence(),
			Reason: fmt.Sprintf("the approval ended at %s, before the work could start; nothing was touched", s.Until.UTC().Format(time.RFC3339)),
		})
	} else {
		end, s.Last = c.run(ctx, j, h, t, s)
	}
	return c.finish(pub, j, h, s, t.Fence(), end)
}

// late reads when my started was stored, and reports whether that is past the
// approval's end. The server's clock decides, at every attempt.
func (c *Claims) late(ctx context.Context, s State) (bool, error) {
	if s.Until.IsZero() || c.farFrom(ctx, s.Until) {
		return false, nil
	}
	var w wait
	for {
		recs, err := c.cfg.Log.ReadFilter(ctx, s.Aggregate.Filter(), s.Started, s.Started)
		if err == nil && len(recs) == 1 {
			return recs[0].Time.After(s.Until), nil
		}
		if err == nil {
			err = errors.New("it is not there")
		}
		if w.pause(ctx) != nil {
			return false, fmt.Errorf("read %s at %d: %w", s.Aggregate, s.Started, err)
		}
	}
}

// clockStep is how much a clock may be set forward unnoticed before an approval
// that has ended is taken for one that has not.
const clockStep = 10 * time.Second

// farFrom reports whether the clock that stamps records is that far from t for
// certain.
func (c *Claims) farFrom(ctx context.Context, t time.Time) bool {
	if c.cfg.Clock == nil {
		return false
	}
	now, err := c.cfg.Clock(ctx)
	return err == nil && now.Add(clockStep).Before(t)
}

// run does the work, follows the log while it lasts, and returns the end and the
// last sequence that was seen.
func (c *Claims) run(ctx context.Context, j Job, h *hold, t Task, s State) (events.Fact, uint64) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(ErrStopping) })()
	f := c.follow(work, cancel, j, h, t)
	defer f.stop()
	end := j.Work.Run(work, t)
	return end, max(s.Last, f.stop())
}

// publishing returns a context for what must still reach the log when ctx is
// done: it ends [grace] later.
func (c *Claims) publishing(ctx context.Context) (context.Context, context.CancelFunc) {
	pub, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(grace, cancel)
		context.AfterFunc(pub, func() { t.Stop() })
	})
	return pub, func() { stop(); cancel() }
}

// finish appends my end, as long as the last fact that holds is my started or a
// cancel after it. Once the work has ended its result stands, and a later cancel
// is answered with it.
func (c *Claims) finish(ctx context.Context, j Job, h *hold, s State, f events.Fence, end events.Fact) (Outcome, error) {
	var w wait
	if end == nil {
		var err error
		if end, err = c.takeBack(ctx, j, s, f, Broken, "the work gave no result"); err != nil {
			return Drop, err
		}
	}
	for {
		_, err := c.cfg.Log.Append(ctx, end, s.Last, s.cause(s.Started))
		if err == nil {
			return c.done(j, s.Aggregate)
		}
		if errors.Is(err, events.ErrTooLarge) {
			reason := fmt.Sprintf("the result (%s) is too large for one message; ask for less", end.FactName())
			if end, err = c.takeBack(ctx, j, s, f, TooLarge, reason); err != nil {
				return Drop, err
			}
			continue
		}
		now, rerr := c.readUntil(ctx, j, s.Aggregate)
		switch {
		case rerr != nil:
			return Drop, fmt.Errorf("append %s to %s: %w", end.FactName(), s.Aggregate, err)
		case now.endedBy(f):
			return c.done(j, s.Aggregate) // the answer was lost, not the fact
		case !now.owned(f):
			return c.fenced(ctx, j, h, now, f) // clause 5
		case now.Last == s.Last && w.pause(ctx) != nil:
			return Drop, fmt.Errorf("append %s to %s: %w", end.FactName(), s.Aggregate, err)
		}
		s = now
	}
}

// takeBack builds the end of work whose own is of no use: what it did is undone,
// for nobody could read what it was.
func (c *Claims) takeBack(ctx context.Context, j Job, s State, f events.Fence, why Why, reason string) (events.Fact, error) {
	effects := events.EffectsNone
	if e, ok := entry(j, s.Aggregate); ok {
		undone, err := j.Journal.Undo(ctx, e)
		if err != nil {
			return nil, fmt.Errorf("undo %s: %w", s.Aggregate, err)
		}
		effects = undone.Effects
	}
	return j.Rules.Failed(s, Failure{Why: why, Reason: reason, Effects: effects, Fence: f}), nil
}

// done: my end is on the log.
func (c *Claims) done(j Job, a events.Aggregate) (Outcome, error) {
	e, ok := entry(j, a)
	if !ok {
		return Ack, nil
	}
	if err := j.Journal.Forget(e); err != nil {
		return Ack, fmt.Errorf("clear the journal of %s: %w", a, err)
	}
	return Ack, nil
}

// fenced is clause 5: somebody else ended it or took it over, so it is mine no
// longer and my changes must go.
func (c *Claims) fenced(ctx context.Context, j Job, h *hold, s State, f events.Fence) (Outcome, error) {
	h.fence()
	c.cfg.Logger.Warn("fenced off", "aggregate", s.Aggregate.String(), "started", f.Started, "phase", s.Phase.String())
	e, ok := entry(j, s.Aggregate)
	if !ok {
		if s.Phase == Ended {
			return Ack, nil
		}
		return Drop, nil
	}
	undone, err := j.Journal.Undo(ctx, e)
	if err != nil {
		return Drop, fmt.Errorf("undo %s: %w", s.Aggregate, err)
	}
	if s.Phase != Ended {
		return Drop, nil // neither recovered nor ack before an end: the journal remembers
	}
	return c.recovered(ctx, j, s, e, undone.Files)
}

// recovered says what became of the files of a late rollback.
func (c *Claims) recovered(ctx context.Context, j Job, s State, e Entry, files []events.RecoveredFile) (Outcome, error) {
	fact := events.Recovered{Ref: s.Aggregate.Ref(), Fence: e.Fence, Worker: c.cfg.Worker, Files: files}
	var w wait
	for !s.recoveredBy(e.Fence) {
		_, err := c.cfg.Log.Append(ctx, fact, s.Last, s.cause(s.Started))
		if err == nil {
			break
		}
		now, rerr := c.readUntil(ctx, j, s.Aggregate)
		if rerr != nil || now.Last == s.Last && w.pause(ctx) != nil {
			return Drop, fmt.Errorf("append recovered to %s: %w", s.Aggregate, err)
		}
		s = now
	}
	return c.done(j, s.Aggregate)
}

// settle finishes an entry of the journal that no work stands behind: its result
// is published, or what was running is rolled back and reported.
func (c *Claims) settle(ctx context.Context, j Job, h *hold, e Entry, s State) (Outcome, error) {
	pub, cancel := c.publishing(ctx)
	defer cancel()
	h.owns(e.Fence.Started)
	switch {
	case s.endedBy(e.Fence):
		return c.done(j, e.Aggregate)
	case !s.owned(e.Fence):
		return c.fenced(pub, j, h, s, e.Fence)
	}
	if e.Result == nil {
		undone, err := j.Journal.Undo(pub, e)
		if err != nil {
			return Drop, fmt.Errorf("undo %s: %w", e.Aggregate, err)
		}
		e.Result = j.Rules.Failed(s, Failure{
			Why: Restarted, Recoverable: true, Effects: undone.Effects, Fence: e.Fence,
			Reason: fmt.Sprintf("worker %s died while this ran, and took it back when it was there again", c.cfg.Worker),
		})
		if err := j.Journal.Result(e, e.Result); err != nil {
			return Drop, fmt.Errorf("journal the end of %s: %w", e.Aggregate, err)
		}
	}
	return c.finish(pub, j, h, s, e.Fence, e.Result)
}

func entry(j Job, a events.Aggregate) (Entry, bool) {
	if j.Journal == nil {
		return Entry{}, false
	}
	return j.Journal.Entry(a)
}
