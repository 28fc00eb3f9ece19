// Package signedlog opens EVENTS so that an approval which the kernel did not
// sign does not hold, whoever put it there.
package signedlog

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/approval"
	"correx/internal/eventlog"
	"correx/internal/leader"
	"correx/pkg/events"
)

// Open opens the log as source, trusting the kernel's key of the state
// directory. What a signature covers is known only once the log is open: its
// name and its creation time.
func Open(ctx context.Context, js jetstream.JetStream, stateDir, source string, logger *slog.Logger) (*eventlog.Log, error) {
	key, err := access.KernelKey(stateDir)
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	var verifier *approval.Verifier // set before anything is read
	log, err := eventlog.Open(ctx, js, eventlog.Options{
		Source: source, Logger: logger,
		Verify: func(r events.Record) error { return verifier.Verify(r) },
	})
	if err != nil {
		return nil, err
	}
	verifier, err = approval.NewVerifier(approval.StreamIdentity(log.Identity()), key)
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	return log, nil
}

// Await is Open for whoever may be there before the log: it tries again until
// the log is open or ctx ends.
func Await(ctx context.Context, js jetstream.JetStream, stateDir, source string, logger *slog.Logger) (*eventlog.Log, error) {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		log, err := Open(ctx, js, stateDir, source, logger)
		if err == nil {
			return log, nil
		}
		logger.Warn("waiting for the log", slog.Any("error", err))
		if stop := leader.Pause(ctx, pause); stop != nil {
			return nil, fmt.Errorf("%w: %w", stop, err)
		}
	}
}
