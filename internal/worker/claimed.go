package worker

import (
	"context"
	"log/slog"

	"correx/internal/claim"
	"correx/internal/eventlog"
	"correx/pkg/events"
)

// ByClaim takes deliveries of a job's consumer through the claim protocol. Judge
// makes of a delivery the record that it is, so that it need not be read; nil: it
// is read.
func ByClaim(c *claim.Claims, j claim.Job, judge func(Delivery) events.Record, logger *slog.Logger) Handler {
	return func(ctx context.Context, d Delivery) Outcome {
		a, _, _, err := events.ParseSubject(d.Subject)
		if err != nil {
			Alarm(logger, d, Term(err.Error()), err)
			return Term(err.Error())
		}
		in := claim.Delivery{Aggregate: a, Seq: d.Seq, After: eventlog.After(d.Header), Again: d.Count > 1}
		if judge != nil {
			in.Record = judge(d)
		}
		o, err := c.Handle(ctx, j, in)
		if err != nil {
			Alarm(logger, d, claimed(o, err), err)
		}
		return claimed(o, err)
	}
}

// Alarm tells people of a delivery that was not worked on.
func Alarm(logger *slog.Logger, d Delivery, o Outcome, err error) {
	logger.Error("delivery not worked on", slog.String("subject", d.Subject), slog.Uint64("seq", d.Seq),
		slog.String("outcome", o.String()), slog.Any("error", err))
}

// claimed settles a delivery as the claim protocol says.
func claimed(o claim.Outcome, err error) Outcome {
	switch o {
	case claim.Ack:
		return Ack()
	case claim.Keep:
		return Keep()
	case claim.Term:
		return Term(reasonOf(err))
	}
	return Drop()
}

func reasonOf(err error) string {
	if err == nil {
		return "it permits nothing"
	}
	return err.Error()
}
