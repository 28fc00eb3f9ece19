package llama

import (
	"context"
	"errors"
	"fmt"
	"time"

	"correx/pkg/events"
)

// A Managed is a model under a [Manager]. It is no process: whoever uses it
// waits until the model is loaded, and keeps it loaded until done.
type Managed struct {
	manager *Manager
	desc    Descriptor
}

// Descriptor is what the model is.
func (m *Managed) Descriptor() Descriptor { return m.desc }

// ID names the provider.
func (m *Managed) ID() events.ProviderID {
	return events.ProviderID("llama-cpp:" + string(m.desc.ModelID))
}

// Capabilities is what the model's name promises.
func (m *Managed) Capabilities() []events.CapabilityScore { return Capabilities(m.desc.ModelID) }

// Infer loads the model if need be and generates one answer. The idle clock of
// a Dynamic model begins anew, an Ephemeral one is unloaded afterwards.
func (m *Managed) Infer(ctx context.Context, r Request) (answer Response, err error) {
	err = m.Use(ctx, func(ctx context.Context, c *Client) error {
		answer, err = c.Infer(ctx, r)
		return err
	})
	return answer, err
}

// Use runs f with the model loaded; it stays so until f returns. The context
// that f gets ends too when the model is unloaded by force, dies, or answers
// nothing any more. The error is
// f's, or why there is no model; a *CrashError where f failed because the
// process died. When ctx ends, Use returns as soon as the server has given up what
// was cancelled.
func (m *Managed) Use(ctx context.Context, f func(context.Context, *Client) error) error {
	l, err := m.manager.acquire(ctx, m.desc, true)
	if err != nil {
		return err
	}
	during, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.proc.Context(), func() { cancel(context.Cause(l.proc.Context())) })
	watched := make(chan struct{})
	go func() { defer close(watched); l.watch(during) }()
	err = f(during, l.proc.Client())
	stop()
	cancel(nil)
	<-watched
	if ctx.Err() != nil {
		l.settle()
	} else {
		err = l.explain(err)
	}
	l.release()
	return err
}

// acquire waits for the model. Use says whether it counts as in flight, and so
// must be released.
func (m *Manager) acquire(ctx context.Context, d Descriptor, use bool) (lease, error) {
	if err := d.Validate(); err != nil {
		return lease{}, &LoadError{Model: d.ModelID, Reason: err.Error(), Err: err}
	}
	t := &ticket{desc: d.withDefaults(), use: use, out: make(chan grant, 1)}
	if !m.do(func() { m.enqueue(t) }) {
		return lease{}, ErrClosed
	}
	select {
	case g := <-t.out:
		return g.lease, g.err
	case <-ctx.Done():
	}
	m.do(func() { m.withdraw(t) })
	select {
	case g := <-t.out: // it came just then
		if g.err == nil && use {
			g.lease.release()
		}
	default:
	}
	return lease{}, fmt.Errorf("wait for model %s: %w", d.ModelID, orCancelled(ctx, nil))
}

// A lease is one use of one process.
type lease struct {
	manager *Manager
	proc    *Process
	serial  uint64
}

func (l lease) release() { l.manager.do(func() { l.manager.release(l.serial) }) }

// crashGrace is how long a process whose connection broke may take to turn out
// dead.
const crashGrace = 2 * time.Second

// explain puts the end of the process in the place of an error that came of it.
func (l lease) explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrConnection) || errors.Is(err, ErrTruncated) {
		timer := time.NewTimer(crashGrace)
		defer timer.Stop()
		select {
		case <-l.proc.Context().Done():
		case <-timer.C:
		}
	}
	model := l.proc.Descriptor.ModelID
	switch cause := context.Cause(l.proc.Context()); {
	case cause == nil:
		return err
	case errors.Is(cause, errDied):
		return &CrashError{Model: model, Exit: l.proc.Exit(), Err: err}
	default:
		return fmt.Errorf("use model %s: %w", model, cause)
	}
}

// watch ends the process when it answers nothing any more: a server whose task
// queue is dead-locked is healthy by its own word, and would keep its client
// waiting for ever.
func (l lease) watch(ctx context.Context) {
	limit := l.manager.cfg.DeadTimeout
	for {
		timer := time.NewTimer(limit / 4)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		asked, cancel := context.WithTimeout(ctx, limit)
		_, err := l.proc.Client().Busy(asked)
		cancel()
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			l.manager.do(func() { l.manager.discard(l.serial, "it answered nothing for "+limit.String()) })
			return
		}
	}
}

const (
	settleTimeout = 5 * time.Second // for a slot to be free after its client left
	settlePoll    = 20 * time.Millisecond
)

// settle waits until the server has given up work that was cancelled. One that
// does not is ended: it would answer nobody else.
func (l lease) settle() {
	ctx, cancel := context.WithTimeout(l.proc.Context(), settleTimeout)
	defer cancel()
	for {
		busy, err := l.proc.Client().Busy(ctx)
		var status *StatusError
		if errors.As(err, &status) {
			return // it does not tell
		}
		if err == nil && busy < max(1, l.inFlight()) {
			return
		}
		select {
		case <-l.proc.Context().Done():
			return
		case <-ctx.Done():
			l.manager.do(func() { l.manager.discard(l.serial, "it did not stop a cancelled inference") })
			return
		case <-time.After(settlePoll):
		}
	}
}

// inFlight counts the uses of the process, this one among them.
func (l lease) inFlight() (n int) {
	l.manager.do(func() {
		if l.serial == l.manager.serial {
			n = l.manager.inFlight
		}
	})
	return n
}
