package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/leader"
)

// attemptWait is how long one publish waits for its answer before it is repeated.
const attemptWait = 2 * time.Second

// errMoved says that a subject's last message is another than was expected.
var errMoved = errors.New("somebody else wrote there")

// publish stores data on subject if the last message there has sequence after,
// and returns the sequence that it got. It repeats until an answer comes or ctx
// ends; a repetition that finds its own first attempt there has succeeded.
func (s *Store) publish(ctx context.Context, subject string, data []byte, after uint64) (uint64, error) {
	pause := 10 * time.Millisecond
	for {
		seq, err := s.attempt(ctx, subject, data, after)
		switch {
		case err == nil:
			return seq, nil
		case conflict(err):
			seq, err = s.resolve(ctx, subject, data, after)
			if !errors.Is(err, errInFlight) {
				return seq, err
			}
		case !leader.Transient(err):
			return 0, err
		case leader.Denied(s.js.Conn(), subject):
			return 0, fmt.Errorf("%s: %w", subject, leader.ErrDenied)
		}
		if stop := leader.Pause(ctx, pause); stop != nil {
			return 0, fmt.Errorf("no answer (nobody leads the bucket, or the server forbids %s): %w (last: %v)", subject, stop, err)
		}
		pause = min(2*pause, 500*time.Millisecond)
	}
}

func (s *Store) attempt(ctx context.Context, subject string, data []byte, after uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptWait)
	defer cancel()
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
		jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(after, 10)},
	}}
	ack, err := s.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// errInFlight says that a replicated bucket refused while another publish,
// perhaps our own, is agreed upon.
var errInFlight = errors.New("refused while another publish is in flight")

// resolve finds out what a refusal means.
func (s *Store) resolve(ctx context.Context, subject string, data []byte, after uint64) (uint64, error) {
	m, err := s.lead.Last(ctx, subject)
	switch {
	case errors.Is(err, leader.ErrNone) && after == 0, err == nil && m.Seq == after:
		return 0, errInFlight
	case errors.Is(err, leader.ErrNone):
		return 0, errMoved
	case err != nil:
		return 0, err
	case m.Seq > after && bytes.Equal(m.Data, data):
		return m.Seq, nil
	}
	return 0, errMoved
}

func conflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}
