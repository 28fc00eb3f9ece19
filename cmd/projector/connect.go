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
	"correx/internal/signedlog"
)

// dial connects and opens the log. The caller closes the connection.
func dial(ctx context.Context, cfg config.Config, name string, logger *slog.Logger) (*nats.Conn, *eventlog.Log, error) {
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
	log, err := signedlog.Open(ctx, js, cfg.State, "projector/"+name, logger)
	if err != nil {
		nc.Close()
		return nil, nil, err
	}
	return nc, log, nil
}

func identity(log *eventlog.Log) projection.Identity { return projection.Identity(log.Identity()) }
