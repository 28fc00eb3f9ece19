package eventlog

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/leader"
	"correx/pkg/events"
)

// HeaderNonce is unique to one call of [Log.Append]. By it a writer knows its
// own record when the answer to a publish was lost.
const HeaderNonce = "correx-nonce"

// A proposal is one fact on its way into the log.
type proposal struct {
	fact  events.FactName
	where events.Aggregate
	after uint64
	nonce string
	msg   *nats.Msg
}

// Append stores f if the last record of its aggregate has sequence after (0:
// there is none), and returns the sequence that it got. Cause is the ce-id of
// the record that led to it, or empty.
//
// It returns [ErrConflict] when the aggregate has moved on, [events.ErrTooLarge]
// before anything is sent, and [ErrDenied] when this role may not write such a
// fact. A nil error is proof that the fact is stored, once. While no answer
// comes Append repeats the same conditional publish until ctx ends, and then
// returns [ErrUnconfirmed] if one of them may have arrived.
func (l *Log) Append(ctx context.Context, f events.Fact, after uint64, cause string) (uint64, error) {
	p, err := l.propose(f, after, cause)
	if err != nil {
		return 0, fmt.Errorf("append: %w", err)
	}
	seq, err := l.settle(ctx, p)
	if err != nil {
		return 0, fmt.Errorf("append %s to %s after %d: %w", p.fact, p.where, after, err)
	}
	return seq, nil
}

// propose makes the message and checks all that the server would refuse.
func (l *Log) propose(f events.Fact, after uint64, cause string) (*proposal, error) {
	if f == nil {
		return nil, errors.New("no fact")
	}
	subject, h, data, err := events.Encode(f, events.Source{Name: l.opts.Source, Cause: cause}, after, time.Now())
	if err != nil {
		return nil, err
	}
	p := &proposal{fact: f.FactName(), where: events.AggregateOf(f), after: after, nonce: rand.Text()}
	h[HeaderNonce] = []string{p.nonce}
	// What jetstream.WithExpectLastSequenceForSubject would set; set here, so
	// that it counts when the size is checked.
	h[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(after, 10)}
	h[jetstream.ExpectedLastSubjSeqSubjHeader] = []string{p.where.Filter()}
	p.msg = &nats.Msg{Subject: subject, Header: nats.Header(h), Data: data}
	if err := l.checkSize(p); err != nil {
		return nil, err
	}
	return p, nil
}

func (l *Log) checkSize(p *proposal) error {
	most := int(l.js.Conn().MaxPayload())
	if l.size > 0 && (most <= 0 || l.size < most) {
		most = l.size
	}
	if size := p.msg.Size() - len(p.msg.Subject); most > 0 && size > most {
		return fmt.Errorf("%s of %s has %d bytes with its headers, at most %d: %w", p.fact, p.where, size, most, events.ErrTooLarge)
	}
	return nil
}

// settle publishes p until its fate is known or ctx ends.
func (l *Log) settle(ctx context.Context, p *proposal) (uint64, error) {
	wait, pause := l.opts.Answer, time.Millisecond
	lost := false // an attempt may have arrived, and its answer did not
	for attempt := 1; ; attempt++ {
		seq, err := l.publish(ctx, p, wait)
		switch {
		case err == nil:
			return seq, nil
		case conflict(err):
			seq, err = l.resolve(ctx, p)
			if !errors.Is(err, errInFlight) {
				return seq, uncertain(lost, err)
			}
		case !leader.Transient(err):
			return 0, uncertain(lost, err)
		case leader.Denied(l.js.Conn(), p.msg.Subject):
			return 0, fmt.Errorf("%s: %w", p.msg.Subject, ErrDenied)
		default:
			l.unanswered(ctx, p, attempt, err)
			lost = lost || !unsent(err)
			wait = min(2*wait, 8*l.opts.Answer)
		}
		if stop := leader.Pause(ctx, pause); stop != nil {
			return 0, uncertain(lost, fmt.Errorf("no answer (nobody leads the stream, or the server forbids %s): %w (last: %v)", p.msg.Subject, stop, err))
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// unanswered reports an attempt without an answer; the first is worth a warning.
func (l *Log) unanswered(ctx context.Context, p *proposal, attempt int, err error) {
	level := slog.LevelDebug
	if attempt == 1 {
		level = slog.LevelWarn
	}
	l.log.Log(ctx, level, "publish was not answered; repeating it", "subject", p.msg.Subject, "after", p.after, "attempt", attempt, "error", err)
}

// publish makes one attempt. Group commit could stand here: all that Append
// promises is told by the answer.
func (l *Log) publish(ctx context.Context, p *proposal, wait time.Duration) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ack, err := l.js.PublishMsg(ctx, p.msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		var api *jetstream.APIError
		if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum {
			return 0, fmt.Errorf("%w: %w", events.ErrTooLarge, err)
		}
		return 0, err
	}
	if ack.Stream != l.id.Stream || ack.Duplicate {
		return 0, fmt.Errorf("stream %s answered (sequence %d, duplicate %t), not %s as a fresh record: is another stream listening on %s?",
			ack.Stream, ack.Sequence, ack.Duplicate, l.id.Stream, p.msg.Subject)
	}
	return ack.Sequence, nil
}

// errInFlight says that a publish was refused though nothing stands behind what
// it expected: a replicated stream refuses while another one, perhaps our own,
// is agreed upon.
var errInFlight = errors.New("refused while another publish is in flight")

// resolve finds out what a refusal means: p is already there, or somebody else
// was faster, or it is not known yet.
func (l *Log) resolve(ctx context.Context, p *proposal) (uint64, error) {
	next, err := l.lead.Next(ctx, p.where.Filter(), p.after+1)
	switch {
	case err == nil && p.is(next):
		return next.Seq, nil
	case err == nil:
		return 0, fmt.Errorf("%w (sequence %d is %s)", ErrConflict, next.Seq, next.Subject)
	case !errors.Is(err, leader.ErrNone):
		return 0, fmt.Errorf("refused, and then: %w", err)
	}
	last, err := l.lead.Last(ctx, p.where.Filter())
	if err != nil && !errors.Is(err, leader.ErrNone) {
		return 0, fmt.Errorf("refused, and then: %w", err)
	}
	if last.Seq < p.after {
		return 0, fmt.Errorf("%w (its last sequence is %d)", ErrConflict, last.Seq)
	}
	return 0, errInFlight
}

// is reports whether m is p as it was stored.
func (p *proposal) is(m leader.Message) bool {
	h := events.Header(m.Header)
	return m.Subject == p.msg.Subject && bytes.Equal(m.Data, p.msg.Data) &&
		h.Get(HeaderNonce) == p.nonce && h.Get(events.HeaderID) == p.msg.Header.Get(events.HeaderID)
}

// conflict reports whether err is one of the two codes for a wrong last
// sequence: 10071 comes from one replica, 10164 mostly from several.
func conflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// unsent reports whether an attempt that failed with err cannot have been
// stored: it never left, or nobody took it.
func unsent(err error) bool {
	return errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrNoStreamResponse)
}

// uncertain adds [ErrUnconfirmed] to an error that leaves the fate of an
// earlier attempt open. A conflict does not: it has been looked into.
func uncertain(lost bool, err error) error {
	if err == nil || !lost || errors.Is(err, ErrConflict) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
}
