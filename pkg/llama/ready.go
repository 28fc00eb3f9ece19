package llama

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How often a server that loads is looked at.
const (
	pollFirst = 5 * time.Millisecond
	pollLast  = 200 * time.Millisecond
)

// comeUp returns nil when the server is healthy, is the one that was started,
// and has answered a probe. Stall is the time without a sign of life after
// which it is given up.
func (p *Process) comeUp(ctx context.Context, stall time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.watch(ctx, cancel, stall)
	}()
	err := p.greet(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	cancel(nil)
	<-watched
	return err
}

// watch cancels ctx when the server died or shows no sign of life for as long
// as stall. Signs are what it prints and what it reads from disk: a large model
// on a slow disk is loading as long as bytes come in.
func (p *Process) watch(ctx context.Context, cancel context.CancelCauseFunc, stall time.Duration) {
	tick := time.NewTicker(max(stall/20, time.Millisecond))
	defer tick.Stop()
	last, read := time.Now(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.done:
			cancel(fmt.Errorf("llama-server ended while loading: %s", p.Exit()))
			return
		case <-tick.C:
		}
		if printed := p.log.Last(); printed.After(last) {
			last = printed
		}
		if n := bytesRead(p.pid); n > read {
			last, read = time.Now(), n
		}
		if quiet := time.Since(last); quiet >= stall {
			cancel(fmt.Errorf("llama-server gave no sign of life for %s", quiet.Round(time.Millisecond)))
			return
		}
	}
}

// greet waits for the server to be healthy, then asks who it is and for one
// token.
func (p *Process) greet(ctx context.Context) error {
	wait := pollFirst
	for {
		err := p.client.call(ctx, "GET", "/health", nil, nil)
		if err == nil {
			break
		}
		var status *StatusError
		if errors.As(err, &status) && !status.Loading() || errors.Is(err, errForeign) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		wait = min(2*wait, pollLast)
	}
	if err := p.identify(ctx); err != nil {
		return err
	}
	if err := p.client.Probe(ctx); err != nil {
		return fmt.Errorf("llama-server is up but does not answer a probe: %w", err)
	}
	return nil
}

// identify makes sure that whoever answers on the port is the child: it takes
// the key, and it has the child's model.
func (p *Process) identify(ctx context.Context) error {
	props, err := p.client.Props(ctx)
	if err != nil {
		return fmt.Errorf("%w, or ours does not say who it is: %w", errForeign, err)
	}
	remote := p.Descriptor.remote()
	if props.ModelAlias != string(p.Descriptor.ModelID) || !remote && props.ModelPath != p.Descriptor.Path {
		return fmt.Errorf("%w, with model %s (%s)", errForeign, props.ModelAlias, props.ModelPath)
	}
	if props.ContextSize == 0 {
		props.ContextSize = p.Descriptor.ContextSize
	}
	p.Props, p.client.window, p.client.noSystem = props, props.ContextSize, props.NoSystem
	return nil
}
