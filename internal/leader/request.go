package leader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// How long one attempt waits for its answer, and the pause between attempts.
// Reads may be repeated at will, so both may be short.
const (
	firstWait, longestWait   = time.Second, 8 * time.Second
	firstPause, longestPause = 10 * time.Millisecond, 500 * time.Millisecond
)

// An answer is what the API sent back: a result, or a fault.
type answer interface{ fault() *jetstream.APIError }

// request repeats a read until it is answered or ctx ends: there may be no
// leader for a moment, or no server. An answer that would be the same next time
// is returned at once.
func request[A answer](ctx context.Context, nc *nats.Conn, subject string, body []byte) (A, error) {
	wait, pause := firstWait, firstPause
	for {
		a, err := attempt[A](ctx, nc, wait, subject, body)
		if err == nil || !Transient(err) {
			return a, err
		}
		if Denied(nc, subject) {
			return a, fmt.Errorf("%s: %w", subject, ErrDenied)
		}
		if stop := Pause(ctx, pause); stop != nil {
			return a, fmt.Errorf("no answer to %s: %w (last: %v)", subject, stop, err)
		}
		wait, pause = min(2*wait, longestWait), min(2*pause, longestPause)
	}
}

func attempt[A answer](ctx context.Context, nc *nats.Conn, wait time.Duration, subject string, body []byte) (A, error) {
	var a A
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	reply, err := nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		return a, fmt.Errorf("%s: answer is not JSON: %w", subject, err)
	}
	if f := a.fault(); f != nil {
		return a, f
	}
	return a, nil
}

// Pause waits for d, or returns why ctx ended.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Transient reports whether a request that failed with err may be answered when
// it is repeated: nobody was there, or whoever was is not ready.
func Transient(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == 503 && api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabled &&
			api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabledForAccount
	}
	for _, t := range []error{
		context.DeadlineExceeded, context.Canceled, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected,
		nats.ErrReconnectBufExceeded, nats.ErrNoServers, nats.ErrStaleConnection, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// Denied reports whether the last thing that the server complained about on nc
// is a publish to subject.
func Denied(nc *nats.Conn, subject string) bool { return Mentions(nc, `"`+subject+`"`) }

// Mentions reports whether the last complaint of the server on nc is about a
// permission, and its text has part in it.
func Mentions(nc *nats.Conn, part string) bool {
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), part)
}
