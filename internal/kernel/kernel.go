// Package kernel decides. It follows EVENTS in stream order, folds each record
// into the state of its session, and appends what session.React answers, each
// decision on the condition that nothing has happened meanwhile to what it is
// about. It reads COMMANDS and carries each out by one fact, or rejects it.
//
// There is no second store: after a restart the kernel folds the log and reacts
// to what is, so that no edge can be missed. Any number of kernels may run;
// what two of them decide for the same reason collides on the log, and one wins.
//
// Work is serial for each key (a session, or an invocation or inference of no
// session) and parallel across keys.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"golang.org/x/sync/errgroup"

	"correx/internal/approval"
	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// Options is what a kernel needs. All but Clock and Permit must be set.
type Options struct {
	Conn     *nats.Conn
	JS       jetstream.JetStream
	Log      *eventlog.Log // with a Verify that knows the kernel's key
	Signer   nkeys.KeyPair // signs approvals
	Settings events.Settings
	Worker   events.WorkerID // the name under which this kernel announces itself
	Version  string
	Logger   *slog.Logger

	// Consumer returns the durable consumer by which workers get a tool's
	// approvals ("tool"), a tool's requests ("preview") or a model's ("model").
	Consumer func(kind, token string) (jetstream.ConsumerConfig, error)
	// Permit lets workers use the consumers of these tokens; nil: they may.
	Permit func(tools, models []string) error
	// Clock is time.Now unless set.
	Clock func() time.Time
}

// A Kernel is one process that decides. Use it for one Run.
type Kernel struct {
	Options
	identity approval.StreamIdentity
	signer   *approval.Signer
	boot     string
	logger   *slog.Logger

	world  atomic.Pointer[session.World]
	folded atomic.Uint64 // last record of EVENTS that was folded or handed to its key
	live   atomic.Bool   // the log up to the start is folded: decide

	mu      sync.Mutex
	keys    map[session.Key]*key
	marks   []mark                           // keys that wait for the fold to pass a sequence
	held    map[events.CommandID]*wish       // commands taken on and not acknowledged
	answers map[events.CommandID]chan Answer // who waits at the api
	recent  recent

	commands commandStream
	slots    chan struct{} // commands taken on and not yet decided or put off
	offers   chan struct{} // somebody announced something: at most one entry
	work     sync.WaitGroup
	ctx      context.Context // of Run; ends the goroutines of keys
}

// maxCommands bounds the commands that are taken on at one time. A command that
// waits for something does not count, so that it holds up nobody.
const maxCommands = 1024

// New returns a kernel that has not begun.
func New(o Options) (*Kernel, error) {
	if o.Conn == nil || o.JS == nil || o.Log == nil || o.Signer == nil || o.Consumer == nil {
		return nil, errors.New("make kernel: connection, log, signer and consumers are needed")
	}
	if !o.Worker.IsKernel() {
		return nil, fmt.Errorf("make kernel: %q is no name of a kernel; those are %v", o.Worker, events.KernelNames())
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Permit == nil {
		o.Permit = func(_, _ []string) error { return nil }
	}
	signer, err := approval.NewSigner(o.Signer)
	if err != nil {
		return nil, fmt.Errorf("make kernel: %w", err)
	}
	id := o.Log.Identity()
	k := &Kernel{
		Options: o, logger: o.Logger,
		identity: approval.StreamIdentity{Stream: id.Stream, Created: id.Created}, signer: signer,
		boot:    nats.NewInbox()[len(nats.InboxPrefix):],
		keys:    map[session.Key]*key{},
		held:    map[events.CommandID]*wish{},
		answers: map[events.CommandID]chan Answer{},
		slots:   make(chan struct{}, maxCommands),
		offers:  make(chan struct{}, 1),
	}
	k.world.Store(&session.World{})
	return k, nil
}

// Run decides until ctx is done, then waits for what is under way. It returns
// nil after a clean stop, and an error when the log itself cannot be trusted.
func (k *Kernel) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	k.ctx = ctx
	announced, err := k.enter(ctx)
	if err != nil && ctx.Err() != nil {
		return nil // asked to stop before it had begun
	}
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return k.Log.Follow(gctx, "evt.>", 1, func(r events.Record) error {
			k.fold(r)
			if r.Seq >= announced && !k.live.Load() {
				k.begin(gctx, g)
			}
			return nil
		})
	})
	err = g.Wait()
	stopped := ctx.Err() != nil
	stop()
	k.work.Wait()
	if stopped && (err == nil || errors.Is(err, context.Canceled)) {
		k.depart()
		return nil
	}
	return err
}

// enter opens COMMANDS and announces the kernel; see [Kernel.announce].
func (k *Kernel) enter(ctx context.Context) (uint64, error) {
	if err := k.commands.open(ctx, k.JS); err != nil {
		return 0, err
	}
	return k.announce(ctx)
}

// begin is called once, when all that was on the log at the start is folded.
func (k *Kernel) begin(ctx context.Context, g *errgroup.Group) {
	k.live.Store(true)
	k.logger.Info("kernel decides", "folded", k.folded.Load())
	k.nudgeAll()
	k.offered()
	g.Go(func() error { return k.serveOffers(ctx) })
	g.Go(func() error { return k.serveCommands(ctx) })
	g.Go(func() error { return k.serveAPI(ctx) })
}

// announce puts the kernel's settings on the log, from where alone they count,
// and returns the sequence up to which the log must be folded before anything
// is decided.
func (k *Kernel) announce(ctx context.Context) (uint64, error) {
	host, _ := os.Hostname() // only shown
	settings := k.Settings
	return k.Log.Report(ctx, events.WorkerStarted{
		Ref: events.Ref{Session: events.System, ID: string(k.Worker)}, Role: events.RoleKernel,
		Boot: k.boot, Host: host, PID: os.Getpid(), Version: k.Version, Settings: &settings,
	})
}

func (k *Kernel) depart() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := k.Log.Report(ctx, events.WorkerStopped{
		Ref: events.Ref{Session: events.System, ID: string(k.Worker)}, Boot: k.boot, Reason: "stopped",
	})
	if err != nil {
		k.logger.Warn("departure is not on the log", "err", err)
	}
}

// fold takes one record of the log to where it belongs.
func (k *Kernel) fold(r events.Record) {
	if r.Aggregate.Session == events.System || r.Aggregate.Kind == events.KindInference {
		k.evolveWorld(r)
	}
	if r.Err != nil {
		k.logger.Warn("alarm: record does not hold", "seq", r.Seq, "subject", r.Subject, "err", r.Err)
	}
	if id, ok := session.KeyOfRecord(r); ok {
		k.toKey(id, r)
	}
	k.folded.Store(r.Seq)
	k.pass(r)
}

func (k *Kernel) evolveWorld(r events.Record) {
	for _, p := range session.Presumes(r) {
		k.logger.Error("alarm: announcement is not believed", "seq", r.Seq, "claim", p)
	}
	next := session.EvolveWorld(*k.world.Load(), r)
	k.world.Store(&next)
	switch r.Fact.(type) {
	case events.WorkerStarted, events.WorkerStopped:
		if k.live.Load() {
			k.nudgeAll()
			k.offered()
		}
	}
}
