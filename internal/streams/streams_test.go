package streams_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/natsd"
	"correx/internal/streams"
	"correx/pkg/events"
)

// serve starts a fresh server and connects as the kernel, who applies the file.
func serve(t *testing.T) jetstream.JetStream {
	t.Helper()
	return connect(t, access.Kernel)
}

// connect starts a fresh server and connects in a role.
func connect(t *testing.T, r access.Role) jetstream.JetStream {
	t.Helper()
	dir := t.TempDir()
	s, err := natsd.Start(t.Context(), natsd.Options{StateDir: dir, Sync: natsd.SyncInterval})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	nc, err := access.Connect(t.Context(), access.Dial{StateDir: dir, Name: "test", Role: r})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func spec(t *testing.T) streams.Spec {
	t.Helper()
	s, err := streams.Default()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plan(t *testing.T, js jetstream.JetStream, s streams.Spec) streams.Plan {
	t.Helper()
	p, err := streams.MakePlan(t.Context(), js, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func apply(t *testing.T, js jetstream.JetStream, s streams.Spec) {
	t.Helper()
	if err := streams.Apply(t.Context(), js, plan(t, js, s), false); err != nil {
		t.Fatal(err)
	}
}

func TestTheFileAppliedIsUnchanged(t *testing.T) {
	js := serve(t)
	s := spec(t)
	first := plan(t, js, s)
	if len(first.Steps) != 4 {
		t.Fatalf("plan has %d steps, want two streams, a bucket and a consumer:\n%s", len(first.Steps), first)
	}
	for _, step := range first.Steps {
		if step.Verdict != streams.Create {
			t.Errorf("%s: %s on an empty server", step.Object, step.Verdict)
		}
	}
	if err := streams.Apply(t.Context(), js, first, false); err != nil {
		t.Fatal(err)
	}
	if again := plan(t, js, s); !again.Unchanged() {
		t.Errorf("the second plan has something to do:\n%s", again)
	}
}

func TestConsumersAreNamedAsThePermissionsSay(t *testing.T) {
	js := serve(t)
	s := spec(t)
	apply(t, js, s)
	const tok = "shell"
	for _, c := range []struct{ kind, durable, filter string }{
		{streams.KindTool, access.ToolDurable(tok), events.RoutedFilter("tool.approved", tok)},
		{streams.KindPreview, access.PreviewDurable(tok), events.RoutedFilter("tool.requested", tok)},
		{streams.KindModel, access.ModelDurable(tok), events.RoutedFilter("inference.requested", tok)},
	} {
		cfg := streams.Consumer(s, c.kind, tok, 300*time.Millisecond)
		if cfg.Durable != c.durable || cfg.FilterSubject != c.filter || cfg.AckWait != 300*time.Millisecond {
			t.Errorf("%s: durable %s, filter %s, ack wait %s; want %s, %s, 300ms", c.kind, cfg.Durable, cfg.FilterSubject, cfg.AckWait, c.durable, c.filter)
		}
		if _, err := js.CreateOrUpdateConsumer(t.Context(), access.StreamEvents, cfg); err != nil {
			t.Errorf("%s: %v", c.kind, err)
		}
	}
	if _, err := js.Consumer(t.Context(), access.StreamCommands, access.KernelCommands); err != nil {
		t.Errorf("consumer of commands: %v", err)
	}
}
