package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/approval"
	"correx/internal/eventlog"
	"correx/internal/natsd"
	"correx/internal/projection"
	"correx/internal/signedlog"
	"correx/pkg/events"
)

// productArg makes this program the embedded server, with the state directory
// behind it, and no kernel.
const productArg = "product-server"

func productServer(state string) error {
	s, err := natsd.Start(context.Background(), natsd.Options{StateDir: state, Sync: natsd.SyncInterval})
	if err != nil {
		return err
	}
	untilTerminated(s.ClientURL())
	s.Shutdown()
	return nil
}

// A bulk is a long log of agents at work, behind the product's server.
type bulk struct {
	state string
	bin   string
	last  uint64
	stop  func()
}

// bulk makes the log, once for all rows that need it.
func (b *bench) bulk(ctx context.Context) (*bulk, error) {
	if b.log != nil {
		return b.log, nil
	}
	state, err := b.scratch("bulk")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "  making a log of %d records ...\n", b.events)
	b.log, err = newBulk(ctx, state, filepath.Join(b.root, "bin"), uint64(b.events))
	return b.log, err
}

func (b *bench) close() {
	if b.log != nil {
		b.log.stop()
	}
}

// newBulk writes the log through a bare server and then lets the product's serve
// it.
func newBulk(ctx context.Context, state, bin string, records uint64) (*bulk, error) {
	if err := access.EnsureKeys(state); err != nil {
		return nil, err
	}
	f, err := newFloorIn(ctx, state, "interval")
	if err != nil {
		return nil, err
	}
	err = fill(ctx, f.js, state, records)
	f.close()
	if err != nil {
		return nil, err
	}
	_, stop, err := startSelf(productArg, state)
	if err != nil {
		return nil, err
	}
	return &bulk{state, bin, records, stop}, nil
}

// fill publishes sessions of ten turns each.
func fill(ctx context.Context, js jetstream.JetStream, state string, records uint64) error {
	log, err := eventlog.Open(ctx, js, eventlog.Options{Source: "bench"})
	if err != nil {
		return err
	}
	key, err := access.Signer(state)
	if err != nil {
		return err
	}
	signer, err := approval.NewSigner(key)
	if err != nil {
		return err
	}
	p := &publisher{js: js, last: map[events.Aggregate]uint64{}, signer: signer, id: approval.StreamIdentity(log.Identity())}
	for n := 0; p.seq < records; n++ {
		if err := p.turn(n, records); err != nil {
			return fmt.Errorf("fill the log: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
		return ctx.Err()
	}
	last, err := log.Last(ctx)
	if err == nil && last != records {
		err = fmt.Errorf("the log has %d records, not %d", last, records)
	}
	return err
}

// open connects as the projector does.
func (l *bulk) open(ctx context.Context) (*nats.Conn, jetstream.JetStream, *eventlog.Log, error) {
	nc, err := access.Connect(ctx, access.Dial{StateDir: l.state, Name: "bench", Role: access.Projector})
	if err != nil {
		return nil, nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, nil, err
	}
	log, err := signedlog.Open(ctx, js, l.state, "bench", slog.New(slog.DiscardHandler))
	if err != nil {
		nc.Close()
		return nil, nil, nil, err
	}
	return nc, js, log, nil
}

// sign publishes a checkpoint of a database of the log.
func (l *bulk) sign(ctx context.Context, path string) error {
	nc, _, log, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	key, err := access.CheckpointSigner(l.state)
	if err != nil {
		return err
	}
	db, err := projection.Open(ctx, path, projection.Identity(log.Identity()))
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	p := projection.New(db, log, projection.Batch{}, quiet)
	err = projection.NewCheckpointer(p, log, key, projection.Due{}, quiet).Publish(ctx)
	return errors.Join(err, db.Close())
}
