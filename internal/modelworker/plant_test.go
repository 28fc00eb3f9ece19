package modelworker_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/eventlog"
	"correx/internal/modelworker"
	"correx/internal/natsd"
	"correx/internal/natstest"
	"correx/internal/session"
	"correx/internal/testenv"
	"correx/internal/testmodel"
	"correx/internal/workerhome"
	"correx/pkg/events"
	"correx/pkg/llama"
)

// ackWait is that of the tests' consumers.
const ackWait = 300 * time.Millisecond

// Names of the models that the tests use. The first needs a token of its own.
const (
	script  = "tests/script.gguf:1"
	endless = "endless"
)

// A plant is a bus with everything on it but workers: the real server with its
// permissions, the streams, and the test in the kernel's place.
type plant struct {
	testing.TB
	ctx    context.Context
	state  string
	models string // where the model files are
	js     jetstream.JetStream
	log    *eventlog.Log // of the kernel
	tools  *eventlog.Log // of a tool-worker
}

func newPlant(t testing.TB) *plant {
	t.Helper()
	p := &plant{TB: t, state: t.TempDir(), models: t.TempDir()}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	p.ctx = ctx
	tokens := []string{events.Token(script), endless}
	srv, err := natsd.Start(ctx, natsd.Options{StateDir: p.state, Models: tokens})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Shutdown() })
	p.js = must(jetstream.New(p.connect(access.Kernel)))(t)
	natstest.Streams(t, p.js, 1)
	p.log = p.open(p.js)
	p.tools = p.open(must(jetstream.New(p.connect(access.ToolWorker)))(t))
	for _, token := range tokens {
		_, err := p.js.CreateConsumer(ctx, access.StreamEvents, jetstream.ConsumerConfig{
			Durable: access.ModelDurable(token), FilterSubject: events.RoutedFilter("inference.requested", token),
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: 1000,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.write()
	return p
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (p *plant) connect(r access.Role) *nats.Conn {
	p.Helper()
	nc := must(access.Connect(p.ctx, access.Dial{StateDir: p.state, Role: r, Name: "test"}))(p)
	p.Cleanup(nc.Close)
	return nc
}

func (p *plant) open(js jetstream.JetStream) *eventlog.Log {
	p.Helper()
	return must(eventlog.Open(p.ctx, js, eventlog.Options{Source: "test", Logger: slog.New(slog.DiscardHandler)}))(p)
}

// write makes the model files.
func (p *plant) write() {
	p.Helper()
	for name, s := range map[string]testmodel.Script{
		"script.gguf": {Tasks: map[string][]string{
			"hello": {testmodel.Call("echo", `{"text":"hi"}`), testmodel.Final("It said hi.")},
			"free":  {"Just text."},
		}},
		"endless.gguf": {Default: []string{testmodel.Endless}, Slow: true},
	} {
		if err := testmodel.Scripted(filepath.Join(p.models, name), s); err != nil {
			p.Fatal(err)
		}
	}
}

// options are those of a worker called name, with both models.
func options(state, models, name, server string) (modelworker.Options, error) {
	home, err := workerhome.Open(state, events.RoleModelWorker, name)
	if err != nil {
		return modelworker.Options{}, err
	}
	descriptor := func(id, file string) modelworker.Model {
		return modelworker.Model{Descriptor: llama.Descriptor{
			ModelID: events.ModelID(id), Path: filepath.Join(models, file), ContextSize: 8192, ResidencyMode: events.Dynamic,
		}}
	}
	return modelworker.Options{
		StateDir: state, Home: home, Host: "host", AckWait: ackWait, Drain: 20 * time.Second, Hold: -1, Executable: server,
		Models: []modelworker.Model{descriptor(script, "script.gguf"), descriptor(endless, "endless.gguf")},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}, nil
}

// A running is a worker in the test's own process.
type running struct {
	id   events.WorkerID
	stop func()
}

// start runs a worker until its stop, or the test's end.
func (p *plant) start(name string, change ...func(*modelworker.Options)) running {
	p.Helper()
	o := must(options(p.state, p.models, name, testenv.LlamaServer(p)))(p)
	for _, c := range change {
		c(&o)
	}
	ctx, cancel := context.WithCancel(p.ctx)
	ended := make(chan error, 1)
	go func() { ended <- modelworker.Run(ctx, o) }()
	stopped := false
	r := running{id: o.Home.Worker(o.Host), stop: func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			p.Errorf("worker %s: %v", name, err)
		}
		o.Home.Close()
	}}
	p.Cleanup(r.stop)
	p.await("the announcement of "+name, func() bool { return len(facts[events.WorkerStarted](p, events.KindWorker, string(r.id))) > 0 })
	return r
}

func (p *plant) append(log *eventlog.Log, f events.Fact) uint64 {
	p.Helper()
	recs := must(log.Read(p.ctx, events.AggregateOf(f)))(p)
	var last uint64
	if n := len(recs); n > 0 {
		last = recs[n-1].Seq
	}
	return must(log.Append(p.ctx, f, last, ""))(p)
}

// await polls until ok.
func (p *plant) await(what string, ok func() bool) {
	p.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			p.Fatalf("waited in vain for %s", what)
		}
	}
}

// facts returns the facts of one type in an aggregate of system.
func facts[T events.Fact](p *plant, k events.Kind, id string) (found []T) {
	p.Helper()
	for _, r := range must(p.log.Read(p.ctx, events.Aggregate{Session: events.System, Kind: k, ID: id}))(p) {
		if f, ok := r.Fact.(T); ok {
			found = append(found, f)
		}
	}
	return found
}

// modelFacts returns the facts of one type about a model on a worker.
func modelFacts[T events.Fact](p *plant, w events.WorkerID, model string) []T {
	p.Helper()
	return facts[T](p, events.KindModel, events.ModelAggregateID(w, events.Token(model)))
}

var echo = events.ToolOffer{
	Name: "echo", Token: "echo", Description: "says what it is told", Digest: "d1",
	Schema:  events.Raw(`{"type":"object","properties":{"text":{"type":"string","maxLength":40}},"required":["text"],"additionalProperties":false}`),
	Example: &events.ToolExample{Task: "Say ho.", Parameters: events.Raw(`{"text":"ho"}`), Result: "ho", Answer: "It said ho."},
}

// offerEcho announces a worker that has the tool.
func (p *plant) offerEcho() {
	p.Helper()
	p.append(p.log, events.WorkerStarted{
		Ref: events.Ref{Session: events.System, ID: "tools"}, Role: events.RoleToolWorker, Boot: "b", Tools: []events.ToolOffer{echo},
	})
}

// begin starts a session and returns the sequence of that.
func (p *plant) begin(s events.SessionID, task string) uint64 {
	p.Helper()
	return p.append(p.log, events.SessionStarted{Ref: events.Ref{Session: s, ID: events.Main}, Task: task, Mode: events.ModePrompt})
}

// ask requests an inference of the model.
func (p *plant) ask(f events.InferenceRequested, model string) uint64 {
	p.Helper()
	f.Model, f.ModelToken, f.Stage, f.Deadline = events.ModelID(model), events.Token(model), "turn-1", time.Now().Add(time.Hour)
	return p.append(p.log, f)
}

func (p *plant) inference(s events.SessionID, id string) session.Inference {
	p.Helper()
	return session.FoldInference(must(p.log.Read(p.ctx, events.Aggregate{Session: s, Kind: events.KindInference, ID: id}))(p))
}

func (p *plant) end(s events.SessionID, id string) session.Inference {
	p.Helper()
	p.await("the end of "+id, func() bool { return p.inference(s, id).Status().Ended() })
	return p.inference(s, id)
}

func (p *plant) completed(s events.SessionID, id string) events.InferenceCompleted {
	p.Helper()
	i := p.end(s, id)
	if i.Done == nil {
		p.Fatalf("%s failed: %+v", id, *i.Failure)
	}
	return *i.Done
}

func (p *plant) failed(s events.SessionID, id string) events.InferenceFailed {
	p.Helper()
	i := p.end(s, id)
	if i.Failure == nil {
		p.Fatalf("%s completed: %+v", id, *i.Done)
	}
	return *i.Failure
}

// settled waits until a model's consumer has nothing left.
func (p *plant) settled(model string) {
	p.Helper()
	p.await("the consumer to be settled", func() bool {
		c, err := p.js.Consumer(p.ctx, access.StreamEvents, access.ModelDurable(events.Token(model)))
		if err != nil {
			return false
		}
		i := c.CachedInfo()
		return i.NumPending == 0 && i.NumAckPending == 0
	})
}

func ref(s events.SessionID, id string) events.Ref { return events.Ref{Session: s, ID: id} }
