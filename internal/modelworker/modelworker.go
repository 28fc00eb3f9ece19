package modelworker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/claim"
	"correx/internal/eventlog"
	"correx/internal/signedlog"
	"correx/internal/worker"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// Run offers the models and answers what is asked of them, until ctx is done or
// somebody asks the worker to drain. Then it takes nothing more, waits for what
// runs, at most o.Drain, ends llama-server, and says that it stopped. It returns
// nil after a clean stop.
func Run(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	p := &process{o: o, id: o.Home.Worker(o.Host), boot: rand.Text()}
	p.logger = o.Logger.With(slog.String("worker", string(p.id)))
	nc, err := access.Connect(ctx, access.Dial{
		StateDir: o.StateDir, URL: o.URL, Name: "model-worker " + string(p.id), Role: access.ModelWorker, Logger: p.logger,
	})
	if err != nil {
		return unlessDone(ctx, err)
	}
	defer nc.Close()
	return unlessDone(ctx, p.run(ctx, nc))
}

// unlessDone makes an error that only says that ctx is done a clean stop.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// A process is one life of a worker.
type process struct {
	o      Options
	id     events.WorkerID
	boot   string
	logger *slog.Logger
	nc     *nats.Conn
	js     jetstream.JetStream
	log    *eventlog.Log
	fleet  *fleet
	report *reporter
	work   *work
	wishes *wishes
	claims *claim.Claims
}

func (p *process) run(ctx context.Context, nc *nats.Conn) error {
	var err error
	p.nc = nc
	if p.js, err = jetstream.New(nc); err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	if p.log, err = signedlog.Await(ctx, p.js, p.o.StateDir, "model-worker/"+string(p.id), p.logger); err != nil {
		return err
	}
	if err := p.build(); err != nil {
		return err
	}
	telling, told := context.WithCancel(context.WithoutCancel(ctx))
	var reports sync.WaitGroup
	reports.Go(func() { p.report.run(telling) })
	err = p.offer(ctx)
	err = errors.Join(err, p.fleet.close()) // what it tells is reported before the farewell
	told()
	reports.Wait()
	return errors.Join(err, p.leave(ctx))
}

// build makes the parts. It ends a llama-server that a former life left.
func (p *process) build() (err error) {
	p.report = newReporter(p.id, p.log, p.logger)
	p.claims, err = claim.New(claim.Config{
		Worker: p.id, Boot: p.boot, Log: p.log, Ask: worker.Asker{Conn: p.nc}, AckWait: p.o.AckWait, Logger: p.logger,
	})
	if err != nil {
		return err
	}
	if p.fleet, err = newFleet(p.o, p.report.observe); err != nil {
		return err
	}
	p.work = &work{
		models: map[string]llama.Descriptor{}, fleet: p.fleet, sessions: newSessions(p.log), offers: newOffers(p.log),
		live: p.live, limit: p.o.Limit, logger: p.logger,
	}
	p.wishes = &wishes{
		log: p.log, fleet: p.fleet, report: p.report, models: map[string]llama.Descriptor{}, logger: p.logger,
		rings: make(chan struct{}, 1), begun: map[string]uint64{},
	}
	for _, m := range p.o.Models {
		p.work.models[events.Token(string(m.ModelID))] = m.Descriptor
		p.wishes.models[p.report.ref(m.ModelID).ID] = m.Descriptor
	}
	return nil
}

// offer announces the worker and works until ctx is done and what runs then has
// ended.
func (p *process) offer(ctx context.Context) error {
	ctx, drain := context.WithCancel(ctx)
	defer drain()
	hangUp, err := p.listen(drain)
	if err != nil {
		return err
	}
	defer hangUp()
	if _, err := p.log.Report(ctx, p.started()); err != nil {
		return err
	}
	var side sync.WaitGroup
	defer side.Wait()
	defer drain()
	side.Go(func() { p.wishes.run(ctx) })
	side.Go(func() { p.checkArgs(ctx) })
	side.Go(func() { p.fleet.stay(ctx) })
	p.logger.Info("model-worker ready", slog.Int("models", len(p.o.Models)))
	return p.handle(ctx)
}

// listen answers questions and hears of cancels and wishes.
func (p *process) listen(drain func()) (hangUp func(), err error) {
	// An end that is not ours and a start after ours both fence us off.
	quiet, err := worker.Doorbell(p.nc, p.claims.Poke, events.InferenceFailed{}.FactName(), events.InferenceStarted{}.FactName())
	if err != nil {
		return nil, err
	}
	still, err := worker.Doorbell(p.nc, p.wishes.ring, events.ModelLoadRequested{}.FactName(), events.ModelUnloadRequested{}.FactName())
	if err != nil {
		quiet()
		return nil, err
	}
	srv, err := worker.Service(p.nc, worker.ServiceConfig{
		Role: events.RoleModelWorker, Version: p.o.Version, Worker: p.id, Boot: p.boot,
		Running: p.claims.Running, Drain: drain, Models: func() any { return p.statuses() },
	})
	if err != nil {
		quiet()
		still()
		return nil, err
	}
	return func() {
		quiet()
		still()
		if err := srv.Stop(); err != nil {
			p.logger.Debug("stop service", slog.Any("error", err))
		}
	}, nil
}

// checkArgs says soon what a load would say late.
func (p *process) checkArgs(ctx context.Context) {
	var all []llama.Descriptor
	for _, m := range p.o.Models {
		all = append(all, m.Descriptor)
	}
	if err := llama.CheckArgs(ctx, p.o.Executable, all...); err != nil && ctx.Err() == nil {
		p.logger.Error("models will not load", slog.Any("error", err))
	}
}

// handle works until ctx is done and what runs then has ended. Each model has
// slots of its own: many requests for one do not keep those for another from
// being heard.
func (p *process) handle(ctx context.Context) error {
	job := p.work.job()
	var workers []*worker.Worker
	for _, m := range p.o.Models {
		w, err := worker.New(worker.SubscriberConfig{
			JetStream: p.js, Slots: max(1, m.Parallel), AckWait: p.o.AckWait, Drain: p.o.Drain, Logger: p.logger,
		})
		if err != nil {
			return err
		}
		w.Handle(access.ModelDurable(events.Token(string(m.ModelID))), worker.ByClaim(p.claims, job, nil, p.logger))
		workers = append(workers, w)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(workers))
	var running sync.WaitGroup
	for i, w := range workers {
		running.Go(func() {
			defer stop() // one that cannot go on ends the process
			errs[i] = w.Run(ctx)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// live publishes a piece of an answer. Nobody waits for it, and it may be lost.
func (p *process) live(subject string, piece delta) {
	if body, err := json.Marshal(piece); err == nil {
		_ = p.nc.Publish(subject, body)
	}
}

// leave says that the worker stopped.
func (p *process) leave(ctx context.Context) error {
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	_, err := p.log.Report(bye, events.WorkerStopped{Ref: p.ref(), Boot: p.boot, Reason: "asked to stop"})
	return err
}

func (p *process) ref() events.Ref { return events.Ref{Session: events.System, ID: string(p.id)} }

func (p *process) started() events.WorkerStarted {
	s := events.WorkerStarted{
		Ref: p.ref(), Role: events.RoleModelWorker, Boot: p.boot, Host: p.o.Host, PID: os.Getpid(),
		Version: p.o.Version, Concurrency: p.o.slots(),
	}
	for _, m := range p.o.Models {
		s.Models = append(s.Models, m.Offer(m.Capabilities))
	}
	return s
}
