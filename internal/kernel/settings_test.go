package kernel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/eventlog"
	"correx/internal/kernel"
	"correx/internal/natsd"
	"correx/internal/natstest"
	"correx/internal/session"
	"correx/internal/signedlog"
	"correx/pkg/events"
)

// guarded is a bench on a server that tells roles apart; its own connection is
// the kernel's.
func guarded(t *testing.T, s events.Settings) (b *bench, connect func(access.Role) *nats.Conn, state string) {
	t.Helper()
	b, state = &bench{t: t, ctx: natstest.Context(t)}, t.TempDir()
	server, err := natsd.Start(b.ctx, natsd.Options{StateDir: state, Tools: []string{"echo"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	connect = func(r access.Role) *nats.Conn {
		t.Helper()
		nc, err := access.Connect(b.ctx, access.Dial{StateDir: state, Name: string(r), Role: r})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	b.nc = connect(access.Kernel)
	b.js = natstest.JetStream(t, b.nc)
	b.applyStreams()
	if b.key, err = access.Signer(state); err != nil {
		t.Fatal(err)
	}
	b.log = b.open("test")
	b.stop = b.kernel("kernel", s)
	return b, connect, state
}

// TestPolicyIsTheKernelsAlone: whoever has a tool-worker's credentials cannot
// make the kernel allow what it asks a person about.
func TestPolicyIsTheKernelsAlone(t *testing.T) {
	want := settings()
	b, connect, state := guarded(t, want)
	actor := *b
	actor.nc = connect(access.Operator)
	if a := actor.api("session.pause", `{"session":"nobody"}`); a.OK {
		t.Fatalf("answered %+v", a) // the kernel is up: what it announced is on the log
	}
	js := natstest.JetStream(t, connect(access.ToolWorker))
	log, err := signedlog.Open(b.ctx, js, state, "worker", nil)
	if err != nil {
		t.Fatal(err)
	}
	loose := want
	loose.Mode, loose.Policy = events.ModeAuto, events.Policy{Version: "v2"}
	claim := events.WorkerStarted{Role: events.RoleKernel, Boot: "b", Settings: &loose}
	for _, name := range events.KernelNames() {
		claim.Ref = events.Ref{Session: events.System, ID: string(name)}
		recs, err := log.Read(b.ctx, events.AggregateOf(claim))
		if err != nil {
			t.Fatal(err)
		}
		var after uint64
		if n := len(recs); n > 0 {
			after = recs[n-1].Seq
		}
		if _, err := log.Append(b.ctx, claim, after, ""); !errors.Is(err, eventlog.ErrDenied) {
			t.Errorf("a tool-worker announced itself as %s: %v", name, err)
		}
	}
	worker := *b
	worker.log = log
	claim.Ref.ID = "w9"
	worker.append(claim) // its own name it may use, and nobody believes it
	worker.append(events.WorkerStarted{Ref: events.Ref{Session: events.System, ID: "w1"}, Role: events.RoleToolWorker, Boot: "b",
		Tools: []events.ToolOffer{echoOffer(events.T2)}, Settings: &loose})
	a := actor.api("tool.request", `{"tool":"echo","parameters":{"text":"hi"}}`)
	if !a.OK {
		t.Fatalf("tool.request answered %+v", a)
	}
	b.invocation(a.Invocation, session.ApprovalRequested)
	world, _, err := eventlog.Replay(b.ctx, b.log, "evt.system.>", session.World{}, session.EvolveWorld)
	if err != nil {
		t.Fatal(err)
	}
	if world.Settings.Mode != want.Mode || world.Settings.Policy.Version != want.Policy.Version {
		t.Errorf("settings on the log are %+v", world.Settings)
	}
}

func TestKernelTakesNoOtherName(t *testing.T) {
	b := start(t, settings())
	o := kernel.Options{Conn: b.nc, JS: b.js, Log: b.log, Signer: b.key, Worker: "w1",
		Consumer: func(_, _ string) (c jetstream.ConsumerConfig, err error) { return c, nil }}
	if _, err := kernel.New(o); err == nil || !strings.Contains(err.Error(), "kernel-2") {
		t.Errorf("a kernel took the name w1: %v", err)
	}
}
