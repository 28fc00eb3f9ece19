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
	"correx/pkg/events"
)

// A client is a connection in the operator's role.
type client struct {
	cfg   config.Config
	conn  *nats.Conn
	js    jetstream.JetStream
	actor events.ActorID
}

// connect reads the configuration and connects. The caller closes the client.
func (a *app) connect(ctx context.Context) (*client, error) {
	cfg, err := a.flags.Load(nil)
	if err != nil {
		return nil, err
	}
	if err := events.CheckToken(a.actor); err != nil {
		return nil, fmt.Errorf("actor %w", err)
	}
	log, err := a.flags.Logger(slog.LevelWarn)
	if err != nil {
		return nil, err
	}
	wait := a.env.Progress("connecting")
	defer wait.Stop()
	conn, err := access.Connect(ctx, access.Dial{
		StateDir: cfg.State, URL: cfg.NATS.URL, Name: "bus", Role: access.Operator, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &client{cfg: cfg, conn: conn, js: js, actor: events.ActorID(a.actor)}, nil
}

func (c *client) close() { c.conn.Close() }

// openLog opens EVENTS, believing approvals by their signature alone.
func (c *client) openLog(ctx context.Context) (*eventlog.Log, error) {
	return openLog(ctx, c.js, c.cfg.State, "bus", nil)
}

// openLog opens EVENTS as source.
func openLog(ctx context.Context, js jetstream.JetStream, state, source string, log *slog.Logger) (*eventlog.Log, error) {
	key, err := access.KernelKey(state)
	if err != nil {
		return nil, err
	}
	var verifier *approval.Verifier
	events, err := eventlog.Open(ctx, js, eventlog.Options{
		Source: source, Logger: log,
		Verify: func(r events.Record) error { return verifier.Verify(r) },
	})
	if err != nil {
		return nil, err
	}
	id := events.Identity()
	verifier, err = approval.NewVerifier(approval.StreamIdentity{Stream: id.Stream, Created: id.Created}, key)
	if err != nil {
		return nil, err
	}
	return events, nil
}
