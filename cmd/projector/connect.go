package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/approval"
	"correx/internal/config"
	"correx/internal/eventlog"
	"correx/internal/projection"
)

// dial connects and opens the log. The caller closes the connection.
func dial(ctx context.Context, cfg config.Config, name string, logger *slog.Logger) (*nats.Conn, *eventlog.Log, error) {
	nc, err := access.Connect(ctx, access.Dial{
		StateDir: cfg.State, URL: cfg.NATS.URL, Name: name, Role: access.Projector, Logger: logger,
	})
	if err != nil {
		return nil, nil, err
	}
	log, err := openLog(ctx, nc, cfg.State, name, logger)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, log, nil
}

// openLog opens the log so that an approval which the kernel did not sign does
// not hold. What the signature covers is known only once the log is open.
func openLog(ctx context.Context, nc *nats.Conn, stateDir, name string, logger *slog.Logger) (*eventlog.Log, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	opts := eventlog.Options{Source: "projector/" + name, Logger: logger}
	plain, err := eventlog.Open(ctx, js, opts)
	if err != nil {
		return nil, err
	}
	pub, err := access.KernelKey(stateDir)
	if err != nil {
		return nil, err
	}
	verifier, err := approval.NewVerifier(approval.StreamIdentity(plain.Identity()), pub)
	if err != nil {
		return nil, err
	}
	opts.Verify = verifier.Verify
	log, err := eventlog.Open(ctx, js, opts)
	if err != nil {
		return nil, err
	}
	if log.Identity() != plain.Identity() {
		return nil, fmt.Errorf("open event log: stream %s was made anew just now; try again", log.Identity().Stream)
	}
	return log, nil
}

func identity(log *eventlog.Log) projection.Identity { return projection.Identity(log.Identity()) }
