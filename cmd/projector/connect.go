package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/config"
	"correx/internal/eventlog"
	"correx/internal/projection"
)

// An opener opens the log: at once, or when it is there.
type opener func(ctx context.Context, js jetstream.JetStream, stateDir, source string, logger *slog.Logger) (*eventlog.Log, error)

// dial connects and opens the log. The caller closes the connection.
func dial(ctx context.Context, cfg config.Config, name string, logger *slog.Logger, open opener) (*nats.Conn, *eventlog.Log, error) {
	nc, err := access.Connect(ctx, access.Dial{
		StateDir: cfg.State, URL: cfg.NATS.URL, Name: name, Role: access.Projector, Logger: logger,
	})
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("open JetStream: %w", err)
	}
	log, err := open(ctx, js, cfg.State, "projector/"+name, logger)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, log, nil
}

func identity(log *eventlog.Log) projection.Identity { return projection.Identity(log.Identity()) }
