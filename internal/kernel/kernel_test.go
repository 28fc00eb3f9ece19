package kernel_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"correx/internal/approval"
	"correx/internal/eventlog"
	"correx/internal/kernel"
	"correx/internal/natstest"
	"correx/internal/session"
	"correx/internal/streams"
	"correx/pkg/events"
)

// settings are quick where a test would wait.
func settings() events.Settings {
	return events.Settings{
		Mode: events.ModePrompt, Limits: events.Limits{Turns: 8, ToolCalls: 20, Tokens: 100000, WallTime: time.Hour},
		Policy: events.Policy{Version: "v1"}, PreviewWait: 2 * time.Second, ApprovalWait: time.Minute, ApprovalTTL: time.Minute,
		OfferWait: time.Minute, RuleTTL: time.Hour, CommandWait: time.Second, Retries: 1, Withdraw: 2, Stop: 4,
	}
}

// bench is a real server with a running kernel, and a worker's and an actor's
// side of it.
type bench struct {
	t    *testing.T
	ctx  context.Context
	bus  *natstest.Bus
	nc   *nats.Conn
	js   jetstream.JetStream
	log  *eventlog.Log
	key  nkeys.KeyPair
	stop func()
}

func start(t *testing.T, s events.Settings) *bench {
	t.Helper()
	b := &bench{t: t, ctx: natstest.Context(t), bus: natstest.Server(t)}
	b.nc = b.bus.Connect(t)
	b.js = natstest.JetStream(t, b.nc)
	b.applyStreams()
	var err error
	if b.key, err = nkeys.CreateUser(); err != nil {
		t.Fatal(err)
	}
	b.log = b.open("test")
	b.stop = b.kernel("kernel", s)
	return b
}

func (b *bench) applyStreams() {
	b.t.Helper()
	spec, err := streams.Default()
	if err != nil {
		b.t.Fatal(err)
	}
	plan, err := streams.MakePlan(b.ctx, b.js, spec, 1)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := streams.Apply(b.ctx, b.js, plan, false); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) open(source string) *eventlog.Log {
	b.t.Helper()
	plain, err := eventlog.Open(b.ctx, b.js, eventlog.Options{Source: source})
	if err != nil {
		b.t.Fatal(err)
	}
	pub, _ := b.key.PublicKey()
	id := plain.Identity()
	v, err := approval.NewVerifier(approval.StreamIdentity{Stream: id.Stream, Created: id.Created}, pub)
	if err != nil {
		b.t.Fatal(err)
	}
	l, err := eventlog.Open(b.ctx, b.js, eventlog.Options{Source: source, Verify: v.Verify})
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

// kernel runs one more kernel; what it returns stops it and waits.
func (b *bench) kernel(name string, s events.Settings) func() {
	b.t.Helper()
	spec, _ := streams.Default()
	k, err := kernel.New(kernel.Options{
		Conn: b.nc, JS: b.js, Log: b.open("kernel"), Signer: b.key, Settings: s, Worker: events.WorkerID(name), Version: "test",
		Logger: slog.New(slog.NewTextHandler(logWriter{b.t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Consumer: func(kind, token string) (jetstream.ConsumerConfig, error) {
			return streams.Consumer(spec, kind, token, time.Second), nil
		},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			b.t.Errorf("kernel %s: %v", name, err)
		}
	}
	b.t.Cleanup(stop)
	return stop
}

type logWriter struct{ t *testing.T }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// api asks the kernel and returns its answer.
func (b *bench) api(verb, body string) kernel.Answer {
	b.t.Helper()
	var a kernel.Answer
	for deadline := time.Now().Add(20 * time.Second); ; {
		m, err := b.nc.Request("api.operator."+verb, []byte(body), 20*time.Second)
		if err == nil {
			if err := json.Unmarshal(m.Data, &a); err != nil {
				b.t.Fatalf("%s answered %s: %v", verb, m.Data, err)
			}
			return a
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: %v", verb, err)
		}
		<-time.After(10 * time.Millisecond) // the kernel is not up yet
	}
}

// append appends a worker's fact behind the last of its aggregate.
func (b *bench) append(f events.Fact) uint64 {
	b.t.Helper()
	recs, err := b.log.Read(b.ctx, events.AggregateOf(f))
	if err != nil {
		b.t.Fatal(err)
	}
	var after uint64
	if len(recs) > 0 {
		after = recs[len(recs)-1].Seq
	}
	seq, err := b.log.Append(b.ctx, f, after, "")
	if err != nil {
		b.t.Fatalf("append %s: %v", f.FactName(), err)
	}
	return seq
}

func echoOffer(tier events.Tier) events.ToolOffer {
	return events.ToolOffer{Name: "echo", Token: "echo", Tier: tier, Digest: "d1", Schema: events.Raw(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`)}
}

// offer announces a worker with an echo tool of a tier, and one with a model.
func (b *bench) offer(tier events.Tier) {
	b.append(events.WorkerStarted{
		Ref: events.Ref{Session: events.System, ID: "w1"}, Role: events.RoleToolWorker, Boot: "b1",
		Tools: []events.ToolOffer{{Name: "echo", Token: "echo", Tier: tier, Digest: "d1", Schema: events.Raw(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`)}},
	})
	b.append(events.WorkerStarted{
		Ref: events.Ref{Session: events.System, ID: "m1"}, Role: events.RoleModelWorker, Boot: "b1",
		Models: []events.ModelOffer{{Name: "m", Token: "m", ContextSize: 4096}},
	})
}

// until reads a key's state until ok, and fails the test when it does not come.
func (b *bench) until(k session.Key, what string, ok func(session.State) bool) session.State {
	b.t.Helper()
	for {
		s, _, err := eventlog.Replay(b.ctx, b.log, k.Filters()[0], session.State{ID: k.Session}, session.Evolve)
		if err != nil {
			b.t.Fatalf("waiting for %s: %v", what, err)
		}
		if ok(s) {
			return s
		}
		select {
		case <-b.ctx.Done():
			b.t.Fatalf("waited in vain for %s; state %+v", what, s)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (b *bench) invocation(id string, want session.ToolInvocationStatus) session.Invocation {
	b.t.Helper()
	k := session.Key{Session: events.System, Kind: events.KindTool, ID: id}
	s := b.until(k, id+" to be "+string(want), func(s session.State) bool {
		i, _ := s.Tool(events.ToolInvocationID(id))
		return i.Status() == want
	})
	i, _ := s.Tool(events.ToolInvocationID(id))
	return i
}

func TestToolRequestIsAskedApprovedSignedAndOnce(t *testing.T) {
	b := start(t, settings())
	b.offer(events.T2)
	a := b.api("tool.request", `{"tool":"echo","parameters":{"text":"hi"}}`)
	if !a.OK || a.Invocation == "" || a.Fact != "tool.requested" {
		t.Fatalf("tool.request answered %+v", a)
	}
	i := b.invocation(a.Invocation, session.ApprovalRequested)
	if a := b.api("tool.approve", `{"invocation":"`+a.Invocation+`","digest":"wrong"}`); a.OK || !strings.Contains(a.Error, i.Asked.Digest) {
		t.Errorf("a wrong digest answered %+v", a)
	}
	if a := b.api("tool.approve", `{"invocation":"`+a.Invocation+`","digest":"`+i.Asked.Digest+`"}`); !a.OK || a.Fact != "tool.approved" {
		t.Errorf("the right digest answered %+v", a)
	}
	if a := b.api("tool.approve", `{"invocation":"`+a.Invocation+`","digest":"`+i.Asked.Digest+`"}`); a.OK || !strings.Contains(a.Error, "approved already") {
		t.Errorf("a second approval answered %+v", a)
	}
	i = b.invocation(a.Invocation, session.Approved)
	if i.Granted.By != "person" || i.Granted.Actor != "operator" || i.Granted.Signature == "" {
		t.Errorf("granted = %+v", i.Granted)
	}
	if _, err := b.js.Consumer(b.ctx, "EVENTS", "tool-echo"); err != nil {
		t.Errorf("the tool's consumer: %v", err)
	}
}

func TestEarlyApprovalWaitsForItsQuestion(t *testing.T) {
	b := start(t, settings())
	digest := approval.Digest("echo", events.Raw(`{"text":"hi"}`), nil, "v1")
	if _, err := b.js.Publish(b.ctx, "cmd.operator.tool.approve", []byte(`{"invocation":"i1","digest":"`+digest+`"}`)); err != nil {
		t.Fatal(err)
	}
	// One behind it is answered though the early one waits.
	if a := b.api("session.pause", `{"session":"nobody"}`); a.OK || !strings.Contains(a.Error, "does not exist") {
		t.Errorf("a command behind an early one answered %+v", a)
	}
	b.offer(events.T2)
	if a := b.api("tool.request", `{"tool":"echo","parameters":{"text":"hi"},"invocation":"i1"}`); !a.OK {
		t.Fatalf("tool.request answered %+v", a)
	}
	b.invocation("i1", session.Approved)
}

func TestEarlyApprovalOfNothingIsRejectedInTheEnd(t *testing.T) {
	b := start(t, settings())
	if a := b.api("tool.approve", `{"invocation":"never","digest":"x"}`); a.OK || !strings.Contains(a.Error, `no invocation "never"`) {
		t.Errorf("answered %+v", a)
	}
}

// reply plays the model-worker for one inference.
func (b *bench) reply(s events.SessionID, id events.InferenceID, r events.Reply) {
	b.t.Helper()
	k := session.Key{Session: s}
	b.until(k, "inference "+string(id), func(s session.State) bool { i, _ := s.Inference(id); return i.Status() != "" })
	ref := events.Ref{Session: s, ID: string(id)}
	seq := b.append(events.InferenceStarted{Ref: ref, Claim: events.Claim{Worker: "w1", Boot: "b1", Nonce: "n", Attempt: 1}})
	b.append(events.InferenceCompleted{Ref: ref, Fence: events.Fence{Started: seq, Nonce: "n"}, Reply: r, Finish: events.FinishStop})
}

// perform plays the tool-worker for one invocation.
func (b *bench) perform(s events.SessionID, id events.ToolInvocationID) {
	b.t.Helper()
	b.until(session.Key{Session: s}, "approval of "+string(id), func(s session.State) bool {
		i, _ := s.Tool(id)
		return i.Status() == session.Approved
	})
	ref := events.Ref{Session: s, ID: string(id)}
	seq := b.append(events.ToolExecutionStarted{Ref: ref, Claim: events.Claim{Worker: "w1", Boot: "b1", Nonce: "n", Attempt: 1}})
	b.append(events.ToolExecutionCompleted{Ref: ref, Fence: events.Fence{Started: seq, Nonce: "n"}, Receipt: events.ToolReceipt{Output: "hi"}})
}

func TestSessionRunsToItsAnswerAcrossKernels(t *testing.T) {
	b := start(t, settings())
	second := b.kernel("kernel-2", settings())
	a := b.api("session.start", `{"session":"s1","task":"say hi"}`)
	if !a.OK || a.Session != "s1" {
		t.Fatalf("session.start answered %+v", a)
	}
	b.offer(events.T0)
	b.reply("s1", "t1", events.Reply{Calls: []events.ToolCall{{Tool: "echo", Arguments: events.Raw(`{"text":"hi"}`)}}, Text: "call"})
	b.perform("s1", "t1-0")
	second()
	b.stop()
	b.stop = b.kernel("kernel", settings())
	final := "hi"
	b.reply("s1", "t2", events.Reply{Final: &final, Text: "final"})
	s := b.until(session.Key{Session: "s1"}, "the end", func(s session.State) bool { return s.Status == session.SessionCompleted })
	if answer, _ := s.Answer(); answer != "hi" {
		t.Errorf("answer = %q", answer)
	}
	if len(s.Inferences) != 2 || len(s.Tools) != 1 || len(s.Alarms) != 0 {
		t.Errorf("%d inferences, %d tools, alarms %v", len(s.Inferences), len(s.Tools), s.Alarms)
	}
	if a := b.api("session.say", `{"session":"s1","text":"and again"}`); !a.OK {
		t.Errorf("say answered %+v", a)
	}
	b.reply("s1", "t3", events.Reply{Final: &final, Text: "final"})
	b.until(session.Key{Session: "s1"}, "the second end", func(s session.State) bool { return s.Status == session.SessionCompleted && len(s.Inferences) == 3 })
	if a := b.api("session.cancel", `{"session":"s1"}`); !a.OK {
		t.Errorf("cancel answered %+v", a)
	}
	if a := b.api("session.say", `{"session":"s1","text":"too late"}`); a.OK || !strings.Contains(a.Error, "CANCELLED") {
		t.Errorf("say to a cancelled session answered %+v", a)
	}
}
