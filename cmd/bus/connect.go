package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/config"
	"correx/internal/eventlog"
	"correx/internal/signedlog"
	"correx/pkg/events"
)

// A client is a connection in the operator's role.
type client struct {
	cfg   config.Config
	conn  *nats.Conn
	js    jetstream.JetStream
	actor events.ActorID
}

// connectFor is how long a person is kept waiting for a server.
const connectFor = 5 * time.Second

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
	if cfg.NATS.URL == "" {
		if _, err := access.URL(cfg.State); err != nil {
			return nil, err // no server has ever run here
		}
	}
	wait := a.env.Progress("connecting")
	defer wait.Stop()
	ctx, cancel := context.WithTimeoutCause(ctx, connectFor, fmt.Errorf("nobody answered for %s", connectFor))
	defer cancel()
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

// connectLog is [app.connect] for whoever needs EVENTS as well. The caller closes
// the client.
func (a *app) connectLog(ctx context.Context) (*client, *eventlog.Log, error) {
	c, err := a.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	log, err := c.openLog(ctx)
	if err != nil {
		c.close()
		return nil, nil, err
	}
	return c, log, nil
}

// openLog opens EVENTS, believing approvals by their signature alone.
func (c *client) openLog(ctx context.Context) (*eventlog.Log, error) {
	return signedlog.Open(ctx, c.js, c.cfg.State, "bus", nil)
}
