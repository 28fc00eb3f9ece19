package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"correx/internal/access"
	"correx/internal/cli"
	"correx/internal/projection"
	"correx/internal/signedlog"
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
	nc, log, err := dial(ctx, cfg, name, logger, signedlog.Await)
	if err != nil {
		return stopped(ctx, err)
	}
	defer nc.Close()
	db, err := projection.Open(ctx, path(cfg), identity(log))
	if err != nil {
		return stopped(ctx, err)
	}
	if from := db.Migrated(); from > 0 {
		logger.Info("the database was brought to the newest schema", "from", from, "to", projection.SchemaVersion)
	}
	key, err := access.CheckpointSigner(cfg.State)
	if err != nil {
		return errors.Join(err, db.Close())
	}
	batch := projection.Batch{Size: cfg.Projector.Batch, Wait: cfg.Projector.BatchWait}
	due := projection.Due{Every: cfg.Projector.CheckpointEvery, Interval: cfg.Projector.CheckpointInterval}
	follower := projection.New(db, log, batch, logger)
	parts := parts{follower, projection.NewCheckpointer(follower, log, key, due, logger), newLife(name, log, logger)}
	err = parts.run(ctx, nc)
	return errors.Join(err, db.Close())
}

// stopped makes an error that only says that ctx is done a clean stop.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// parts are what a projector does: it follows, signs and announces.
type parts struct {
	follower *projection.Projector
	signer   *projection.Checkpointer
	life     *life
}

// run runs the parts, and answers queries, until ctx is done or one of them fails.
// Its own end is on the log, and in the database and in a checkpoint, before it
// stops.
func (p parts) run(ctx context.Context, nc *nats.Conn) error {
	l := p.life
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, inner := errgroup.WithContext(inner)
	signing, enough := context.WithCancel(inner)
	defer enough()
	signed := make(chan struct{})
	g.Go(func() error { return p.follower.Run(inner) })
	g.Go(func() error { return projection.Serve(inner, nc, p.follower, cli.Version) })
	g.Go(func() error { defer close(signed); return p.signer.Run(signing) })
	g.Go(func() error {
		defer stop()
		if err := l.begin(inner, ctx); err != nil {
			return err
		}
		l.logger.Info("projecting", "stream", l.log.Identity().Stream, "from", p.follower.Applied(), "worker", l.id)
		select {
		case <-ctx.Done():
		case <-inner.Done(): // another part failed
			return nil
		}
		enough()
		<-signed
		if l.end(inner, p.follower.Wait, "asked to stop") {
			p.sign(inner)
		}
		return nil
	})
	err := g.Wait()
	if err != nil {
		l.end(context.WithoutCancel(ctx), nil, err.Error())
	}
	return err
}

// sign publishes the last checkpoint. It takes at most two seconds; what fails is
// only logged.
func (p parts) sign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := p.signer.Finish(ctx); err != nil {
		p.life.logger.Warn("publish the last checkpoint", "error", err)
	}
}
