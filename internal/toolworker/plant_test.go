package toolworker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"correx/internal/access"
	"correx/internal/approval"
	"correx/internal/eventlog"
	"correx/internal/natsd"
	"correx/internal/natstest"
	"correx/internal/session"
	"correx/pkg/events"
)

// ackWait is that of the tests' consumers.
const ackWait = 300 * time.Millisecond

// A plant is a bus with everything on it but workers: the real server with its
// permissions, the streams, and the test in the kernel's place.
type plant struct {
	testing.TB
	ctx   context.Context
	state string
	srv   *natsd.Server
	nc    *nats.Conn
	js    jetstream.JetStream
	log   *eventlog.Log
	key   nkeys.KeyPair
}

func newPlant(t testing.TB, tools ...string) *plant {
	t.Helper()
	return newPlantFor(t, 90*time.Second, tools...)
}

// newPlantFor makes one whose test may take as long as limit.
func newPlantFor(t testing.TB, limit time.Duration, tools ...string) *plant {
	t.Helper()
	p := &plant{TB: t, state: t.TempDir()}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	p.ctx = ctx
	p.serve(tools...)
	t.Cleanup(func() { p.srv.Shutdown() })
	p.key = must(access.Signer(p.state))(t)
	p.nc = must(access.Connect(ctx, access.Dial{StateDir: p.state, Role: access.Kernel, Name: "test"}))(t)
	t.Cleanup(p.nc.Close)
	p.js = must(jetstream.New(p.nc))(t)
	natstest.Streams(t, p.js, 1)
	p.log = must(eventlog.Open(ctx, p.js, eventlog.Options{
		Source: "test", Verify: func(events.Record) error { return nil }, Logger: slog.New(slog.DiscardHandler),
	}))(t)
	for _, token := range tools {
		p.consumer(access.ToolDurable(token), events.RoutedFilter("tool.approved", token))
		p.consumer(access.PreviewDurable(token), events.RoutedFilter("tool.requested", token))
	}
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

func (p *plant) serve(tools ...string) {
	p.Helper()
	srv, err := natsd.Start(p.ctx, natsd.Options{StateDir: p.state, Tools: tools})
	if err != nil {
		p.Fatal(err)
	}
	p.srv = srv
}

func (p *plant) consumer(name, filter string) {
	p.Helper()
	_, err := p.js.CreateConsumer(p.ctx, access.StreamEvents, jetstream.ConsumerConfig{
		Durable: name, FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy,
		DeliverPolicy: jetstream.DeliverAllPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: 1000,
	})
	if err != nil {
		p.Fatal(err)
	}
}

// A call is an invocation as the tests ask for it.
type call struct {
	id     string
	tool   string
	params string
	until  time.Duration // of the approval; 0: an hour
	tier   events.Tier
	after  string                        // the invocation that it follows
	forge  func(*events.ApprovalGranted) // after signing
}

func (c call) aggregate() events.Aggregate {
	return events.Aggregate{Session: "s1", Kind: events.KindTool, ID: c.id}
}

// request puts a request on the log.
func (p *plant) request(c call) uint64 {
	p.Helper()
	return p.append(0, events.ToolInvocationRequested{
		Ref: c.aggregate().Ref(), Token: c.tool, Tier: c.tier, Follows: events.ToolInvocationID(c.after),
		Request: events.ToolRequest{
			Invocation: events.ToolInvocationID(c.id), Session: "s1", Stage: "turn-1", Tool: c.tool, Parameters: events.Raw(c.params),
		},
	})
}

// approve signs an approval of what is on the log by now.
func (p *plant) approve(c call) uint64 {
	p.Helper()
	for {
		i := p.invocation(c.id)
		seq, err := p.log.Append(p.ctx, p.grant(c, i.Digest("p")), i.LastSeq, "")
		if errors.Is(err, eventlog.ErrConflict) {
			continue // a preview was faster
		}
		if err != nil {
			p.Errorf("approve %s: %v", c.id, err)
		}
		return seq
	}
}

func (p *plant) grant(c call, digest string) events.ApprovalGranted {
	p.Helper()
	if c.until == 0 {
		c.until = time.Hour
	}
	g := events.ApprovalGranted{
		Ref: c.aggregate().Ref(), Token: c.tool, Tool: c.tool, Tier: c.tier, Policy: "p", By: "policy",
		Digest: digest, Until: time.Now().Add(c.until),
	}
	id := p.log.Identity()
	g, err := approval.Sign(p.key, approval.StreamIdentity{Stream: id.Stream, Created: id.Created}, g)
	if err != nil {
		p.Errorf("sign the approval of %s: %v", c.id, err)
	}
	if c.forge != nil {
		c.forge(&g)
	}
	return g
}

// ask requests and approves.
func (p *plant) ask(c call) {
	p.Helper()
	p.request(c)
	p.approve(c)
}

func (p *plant) append(after uint64, f events.Fact) uint64 {
	p.Helper()
	seq, err := p.log.Append(p.ctx, f, after, "")
	if err != nil {
		p.Errorf("append %s: %v", f.FactName(), err)
	}
	return seq
}

func (p *plant) invocation(id string) session.Invocation {
	p.Helper()
	recs, err := p.log.Read(p.ctx, call{id: id}.aggregate())
	if err != nil {
		p.Fatal(err)
	}
	return session.FoldInvocation(recs)
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

// end waits for an invocation's end.
func (p *plant) end(id string) events.Fact {
	p.Helper()
	p.await("the end of "+id, func() bool { return p.invocation(id).Status().Ended() })
	return p.invocation(id).End
}

func (p *plant) completed(id string) events.ToolExecutionCompleted {
	p.Helper()
	e, ok := p.end(id).(events.ToolExecutionCompleted)
	if !ok {
		p.Fatalf("%s ended with %+v, want completed", id, p.invocation(id).End)
	}
	return e
}

func (p *plant) failed(id string) events.ToolExecutionFailed {
	p.Helper()
	e, ok := p.end(id).(events.ToolExecutionFailed)
	if !ok {
		p.Fatalf("%s ended with %+v, want failed", id, p.invocation(id).End)
	}
	return e
}

func (p *plant) rejected(id string) events.ToolExecutionRejected {
	p.Helper()
	e, ok := p.end(id).(events.ToolExecutionRejected)
	if !ok {
		p.Fatalf("%s ended with %+v, want rejected", id, p.invocation(id).End)
	}
	return e
}

// settled waits until a consumer has nothing left, on its way or to come.
func (p *plant) settled(durable string) {
	p.Helper()
	p.await(durable+" to be settled", func() bool {
		c, err := p.js.Consumer(p.ctx, access.StreamEvents, durable)
		if err != nil {
			return false
		}
		i := c.CachedInfo()
		return i.NumPending == 0 && i.NumAckPending == 0
	})
}

// announced waits for a worker's announcement, and returns the last one.
func (p *plant) announced(name string) events.WorkerStarted {
	p.Helper()
	var found events.WorkerStarted
	p.await("the announcement of "+name, func() bool {
		for _, f := range p.workerFacts() {
			if s, ok := f.(events.WorkerStarted); ok && (name == "" || s.ID == name) {
				found = s
			}
		}
		return found.ID != ""
	})
	return found
}

func (p *plant) workerFacts() []events.Fact {
	p.Helper()
	recs, err := p.log.ReadFilter(p.ctx, events.KindFilter(events.System, events.KindWorker), 1, 0)
	if err != nil {
		p.Fatal(err)
	}
	var facts []events.Fact
	for _, r := range recs {
		facts = append(facts, r.Fact)
	}
	return facts
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(errors.Unwrap(err))
	}
	return string(b)
}
