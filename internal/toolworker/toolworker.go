package toolworker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/artifacts"
	"correx/internal/claim"
	"correx/internal/eventlog"
	"correx/internal/signedlog"
	"correx/internal/worker"
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// Run offers the tools and runs what was approved, until ctx is done or somebody
// asks the worker to drain. Then it takes nothing more, waits for what runs, at
// most o.Drain, and says that it stopped. It returns nil after a clean stop.
func Run(ctx context.Context, o Options) error {
	o, end := o.foreign(ctx)
	defer end()
	return live(ctx, o, (*process).offer)
}

// Recover finishes what a former process of this worker left in its journal, and
// returns. A worker that starts does the same by itself.
func Recover(ctx context.Context, o Options) error {
	return live(ctx, o, func(*process, context.Context) error { return nil })
}

// live connects, recovers, and then does what then says.
func live(ctx context.Context, o Options, then func(*process, context.Context) error) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	p := &process{o: o, id: o.Home.Worker(o.Host), boot: rand.Text()}
	p.logger = o.Logger.With(slog.String("worker", string(p.id)))
	nc, err := access.Connect(ctx, access.Dial{
		StateDir: o.StateDir, URL: o.URL, Name: "tool-worker " + string(p.id), Role: access.ToolWorker, Logger: p.logger,
	})
	if err != nil {
		return stopped(ctx, err)
	}
	defer nc.Close()
	return stopped(ctx, p.run(ctx, nc, then))
}

// stopped makes an error that only says that ctx is done a clean stop.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// A process is one life of a worker.
type process struct {
	o        Options
	id       events.WorkerID
	boot     string
	logger   *slog.Logger
	js       jetstream.JetStream
	log      *eventlog.Log
	registry *tools.Registry
	executor *sandbox.Executor
	work     *work
	claims   *claim.Claims
	heard    requests
}

func (p *process) run(ctx context.Context, nc *nats.Conn, then func(*process, context.Context) error) error {
	var err error
	if p.js, err = jetstream.New(nc); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	if p.log, err = signedlog.Await(ctx, p.js, p.o.StateDir, "tool-worker/"+string(p.id), p.logger); err != nil {
		return err
	}
	disk, pending, err := sandbox.OpenJournal(p.o.Home.Dir, sandbox.JournalOptions{Logger: p.logger, Fault: p.o.Fault})
	if err != nil {
		return err
	}
	defer disk.Close()
	entries, err := p.build(nc, disk, pending)
	if err != nil {
		return err
	}
	ctx, drain := context.WithCancel(ctx)
	defer drain()
	leave, err := p.serve(nc, drain)
	if err != nil {
		return err
	}
	defer leave()
	if err := p.recover(ctx, entries); err != nil {
		return err
	}
	return then(p, ctx)
}

// offer announces the worker, works until ctx is done, and says that it stopped.
// An announcement that was cut off may be on the log all the same.
func (p *process) offer(ctx context.Context) error {
	_, err := p.log.Report(ctx, p.started())
	if err == nil {
		p.logger.Info("tool-worker ready", slog.Int("tools", len(p.registry.All())), slog.Int("concurrency", p.o.Concurrency))
		err = p.handle(ctx)
	}
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, late := p.log.Report(bye, events.WorkerStopped{Ref: p.ref(), Boot: p.boot, Reason: "asked to stop"})
	return errors.Join(err, late)
}

// build makes the parts that need no network yet.
func (p *process) build(nc *nats.Conn, disk *sandbox.Journal, pending []sandbox.Entry) ([]claim.Entry, error) {
	var err error
	if p.registry, err = tools.NewRegistry(p.o.Tools...); err != nil {
		return nil, err
	}
	if p.executor, err = sandbox.NewExecutor(sandbox.ExecutorOptions{
		Registry: p.registry, Journal: disk, Dir: p.o.Home.Dir, Root: p.o.Root, Isolation: p.o.Isolation, Logger: p.logger,
	}); err != nil {
		return nil, err
	}
	if p.claims, err = claim.New(claim.Config{
		Worker: p.id, Boot: p.boot, Log: log{p.log, &p.heard}, Ask: worker.Asker{Conn: nc}, AckWait: p.o.AckWait, Logger: p.logger,
		Clock: p.log.NotAfter,
	}); err != nil {
		return nil, err
	}
	journal, entries, faults := newJournal(disk, pending)
	for _, f := range faults {
		p.logger.Error("journal entry has an unreadable result; it is rolled back", slog.Any("error", f))
	}
	p.work = &work{
		worker: p.id, executor: p.executor, journal: journal, artifacts: artifacts.New(p.js),
		isolation: p.o.Isolation, least: p.o.Least, logger: p.logger,
	}
	return entries, nil
}

// serve answers questions and listens for cancels. It does so before anything is
// recovered: whoever asks whether this worker still holds something must hear it.
func (p *process) serve(nc *nats.Conn, drain func()) (leave func(), err error) {
	quiet, err := worker.Doorbell(nc, p.claims.Poke, events.CancelRequested{}.FactName(), events.ToolExecutionFailed{}.FactName())
	if err != nil {
		return nil, err
	}
	for _, t := range p.registry.All() {
		if _, err := p.heard.hear(nc, events.Token(t.Name())); err != nil {
			quiet()
			return nil, err
		}
	}
	srv, err := worker.Service(nc, worker.ServiceConfig{
		Role: events.RoleToolWorker, Version: p.o.Version, Worker: p.id, Boot: p.boot,
		Running: p.claims.Running, Drain: drain, Tools: p.started().Tools,
	})
	if err != nil {
		quiet()
		return nil, err
	}
	return func() {
		quiet()
		if err := srv.Stop(); err != nil {
			p.logger.Debug("stop service", slog.Any("error", err))
		}
	}, nil
}

// recover finishes what a former process of this worker left undone. What cannot
// be finished now stays in the journal, for the next delivery or start.
func (p *process) recover(ctx context.Context, entries []claim.Entry) error {
	job := claim.Job{Rules: claim.ToolRules{Worker: p.id, Isolation: p.o.Isolation}, Journal: p.work.journal}
	for _, e := range entries {
		log := p.logger.With(slog.String("aggregate", e.Aggregate.String()), slog.Uint64("started", e.Fence.Started))
		log.Info("recovering", slog.Bool("result", e.Result != nil))
		err := p.claims.Recover(ctx, job, e)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			log.Error("not recovered; the journal keeps it", slog.Any("error", err))
		}
	}
	return nil
}

func (p *process) ref() events.Ref {
	return events.Ref{Session: events.System, ID: string(p.id)}
}

func (p *process) started() events.WorkerStarted {
	s := events.WorkerStarted{
		Ref: p.ref(), Role: events.RoleToolWorker, Boot: p.boot, Host: p.o.Host, PID: os.Getpid(),
		Version: p.o.Version, Concurrency: p.o.Concurrency,
	}
	for _, t := range p.registry.All() {
		s.Tools = append(s.Tools, tools.Offer(t, p.o.Isolation))
	}
	return s
}
