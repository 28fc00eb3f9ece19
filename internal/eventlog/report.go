package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"correx/internal/leader"
	"correx/pkg/events"
)

// Report appends f behind whatever is the last record of its aggregate, and
// tries again until it is there or ctx ends. It gives up at once on what the
// server forbids and on what is too large or no fact at all. It is for what
// holds whatever stands before it, and does no harm twice: what a process says
// of itself.
func (l *Log) Report(ctx context.Context, f events.Fact) (uint64, error) {
	p, err := l.propose(f, 0, "")
	if err != nil {
		return 0, fmt.Errorf("report: %w", err)
	}
	for pause := 50 * time.Millisecond; ; {
		seq, err := l.appendLast(ctx, f)
		switch {
		case err == nil:
			return seq, nil
		case errors.Is(err, ErrConflict):
			continue // somebody was faster
		case errors.Is(err, ErrDenied), errors.Is(err, events.ErrTooLarge):
			return 0, fmt.Errorf("report: %w", err)
		}
		if stop := leader.Pause(ctx, pause); stop != nil {
			return 0, fmt.Errorf("report %s of %s: %w (last: %w)", p.fact, p.where, stop, err)
		}
		l.log.Warn("fact was not reported; trying again", "fact", p.fact, "of", p.where.String(), "error", err)
		pause = min(2*pause, 2*time.Second)
	}
}

func (l *Log) appendLast(ctx context.Context, f events.Fact) (uint64, error) {
	last, err := l.lead.Last(ctx, events.AggregateOf(f).Filter())
	if err != nil && !errors.Is(err, leader.ErrNone) {
		return 0, err
	}
	return l.Append(ctx, f, last.Seq, "")
}
