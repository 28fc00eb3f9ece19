package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/internal/projection"
	"correx/pkg/events"
)

func newRunCommand(p *program) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "run",
		Short: "follow the log into the database and answer queries (the default)",
		Long: `Run follows the log into the database, in transactions that hold their own
checkpoint, and answers query.<noun> requests as the NATS micro service
"projector". It stops in good order on SIGINT or SIGTERM.

What does not fit together, such as a gap in the stream, a stranger's stream or
one that has become shorter, is an alarm that ends it. The message says what can
be done; nothing is ever skipped.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.run(cmd.Context(), name) },
	}
	c.Flags().StringVar(&name, "name", "", "name of this projector on the bus (default projector-<host>)")
	return c
}

func (p *program) run(ctx context.Context, name string) error {
	cfg, logger, err := p.load(slog.LevelInfo)
	if err != nil {
		return err
	}
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find the host's name: %w; give --name", err)
		}
		name = events.Token("projector-" + host)
	}
	if err := events.CheckToken(name); err != nil {
		return cli.Usage("--name %v", err)
	}
	lock, err := projection.Acquire(path(cfg))
	if err != nil {
		return err
	}
	defer lock.Release() // the process's end would do as well
	nc, log, err := dial(ctx, cfg, name, logger)
	if err != nil {
		return stopped(ctx, err)
	}
	defer nc.Close()
	db, err := projection.Open(ctx, path(cfg), identity(log))
	if err != nil {
		return stopped(ctx, err)
	}
	batch := projection.Batch{Size: cfg.Projector.Batch, Wait: cfg.Projector.BatchWait}
	err = project(ctx, nc, log, projection.New(db, log, batch, logger), newLife(name, log, logger))
	return errors.Join(err, db.Close())
}

// stopped makes an error that only says that ctx is done a clean stop.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// project follows, answers and announces until ctx is done or a part fails. Its
// own end is on the log, and in the database, before it stops.
func project(ctx context.Context, nc *nats.Conn, log *eventlog.Log, p *projection.Projector, l *life) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, inner := errgroup.WithContext(inner)
	g.Go(func() error { return p.Run(inner) })
	g.Go(func() error { return projection.Serve(inner, nc, p, cli.Version) })
	g.Go(func() error {
		defer stop()
		if err := l.begin(inner, ctx); err != nil {
			return err
		}
		l.logger.Info("projecting", "stream", log.Identity().Stream, "from", p.Applied(), "worker", l.id)
		select {
		case <-ctx.Done():
		case <-inner.Done(): // another part failed
			return nil
		}
		l.end(inner, p.Wait, "asked to stop")
		return nil
	})
	err := g.Wait()
	if err != nil {
		l.end(context.WithoutCancel(ctx), nil, err.Error())
	}
	return err
}
