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
	alone   bool
}

// Descriptor is what the model is.
func (m *Managed) Descriptor() Descriptor { return m.desc }

// ID names the provider.
func (m *Managed) ID() events.ProviderID {
	return events.ProviderID("llama-cpp:" + string(m.desc.ModelID))
}

// Capabilities is what the model's name promises.
func (m *Managed) Capabilities() []events.CapabilityScore { return Capabilities(m.desc.ModelID) }

// Alone is the same model, for whoever needs it with nobody beside: a use waits
// until no other is in flight, and others wait until it ends. Where requests
// share a batch, rounding makes texts differ.
func (m *Managed) Alone() *Managed { return &Managed{m.manager, m.desc, true} }

// Infer loads the model if need be and generates one answer. The idle clock of
// a Dynamic model begins anew, an Ephemeral one is unloaded afterwards.
func (m *Managed) Infer(ctx context.Context, r Request) (answer Response, err error) {
	if r.Generation.Exact {
		m = m.Alone()
	}
	err = m.Use(ctx, func(ctx context.Context, c *Client) error {
		answer, err = c.Infer(ctx, r)
		return err
	})
	return answer, err
}

// Use runs f with the model loaded; it stays so until f returns. The context
// that f gets ends too when the model is unloaded by force, dies, answers nothing
// any more, or does not get on. The error is f's, or why there is no model; a
// *CrashError where f failed because the process died. When ctx ends, Use returns
// as soon as the server has given up what was cancelled. As many uses are in
// flight at one time as the model has slots.
func (m *Managed) Use(ctx context.Context, f func(context.Context, *Client) error) error {
	l, err := m.manager.acquire(ctx, ticket{desc: m.desc, use: true, alone: m.alone})
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

// acquire waits for the model. What is granted to a use must be released.
func (m *Manager) acquire(ctx context.Context, wanted ticket) (lease, error) {
	t, d := &wanted, wanted.desc
	if err := d.Validate(); err != nil {
		return lease{}, &LoadError{Model: d.ModelID, Reason: err.Error(), Err: err}
	}
	t.desc, t.out = d.withDefaults(), make(chan grant, 1)
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
		if g.err == nil && t.use {
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
		if errors.Is(err, context.Canceled) {
			err = cause // nobody but the death cancelled it
		}
		return &CrashError{Model: model, Exit: l.proc.Exit(), OutOfMemory: l.proc.OutOfMemory(), Err: err}
	default:
		return fmt.Errorf("use model %s: %w", model, cause)
	}
}
