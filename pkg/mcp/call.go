package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// guarded asks something of the server. If the answer, or the refusal to wait for
// it, is long overdue, the server does not even read, and is killed.
func guarded[T any](ctx context.Context, l *link, ask func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := ask()
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o.value, o.err
	case <-time.After(lateness):
		l.kill(errors.New("it does not read what it is sent"))
		o := <-done
		return o.value, o.err
	}
}

// A stop is why there is no result.
type stop struct {
	reason      string
	recoverable bool
}

func (s *stop) Error() string { return s.reason }

// explain says what the error of a call means. A server that ended meanwhile says
// how.
func (s *server) explain(ctx context.Context, l *link, err error) error {
	var wire *jsonrpc.Error
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &stop{"no answer within the time-out; what it did is not known", true}
	case ctx.Err() != nil:
		return &stop{"cancelled; what it did is not known", true}
	case errors.Is(err, sdk.ErrSessionMissing):
		l.kill(err) // so that the next call finds it ended
		return &stop{"the server forgot the session; the next call begins a new one", true}
	case errors.As(err, &wire):
		code := fmt.Sprintf("the server refused the call (%d): %s", wire.Code, visible(wire.Message, 2<<10))
		return &stop{code, wire.Code == jsonrpc.CodeInternalError}
	}
	select {
	case <-l.gone:
		return &stop{"server ended: " + l.why, true}
	case <-time.After(2 * closing):
	}
	return &stop{visible(err.Error(), 2<<10), true}
}

// visibly is a stranger's error, fit to be shown.
func visibly(err error) error { return shown{err} }

type shown struct{ error }

func (s shown) Error() string { return visible(s.error.Error(), 2<<10) }
func (s shown) Unwrap() error { return s.error }
