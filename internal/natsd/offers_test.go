package natsd_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/natsd"
	"correx/internal/streams"
)

// durable makes the consumer of a tool, as the kernel does.
func durable(t *testing.T, js jetstream.JetStream, token string) {
	t.Helper()
	spec, err := streams.Default()
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateOrUpdateConsumer(t.Context(), access.StreamEvents, streams.Consumer(spec, streams.KindTool, token, 0))
	if err != nil {
		t.Fatal(err)
	}
}

// mayPull says whether a worker may use a tool's consumer.
func mayPull(t *testing.T, nc *nats.Conn, token string) bool {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = js.Consumer(ctx, access.StreamEvents, access.ToolDurable(token))
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("consumer of %s: %v", token, err)
	}
	return err == nil
}

func TestOffersAreAllowedWithoutReconnecting(t *testing.T) {
	dir := t.TempDir()
	s := start(t, natsd.Options{StateDir: dir})
	js := apply(t, connect(t, dir, access.Kernel))
	durable(t, js, "shell")
	worker := connect(t, dir, access.ToolWorker)
	heard, err := worker.SubscribeSync("evt.>")
	if err != nil {
		t.Fatal(err)
	}
	if mayPull(t, worker, "shell") {
		t.Fatal("a tool that nobody announced can be pulled")
	}
	if err := s.AllowOffers([]string{"shell"}, nil); err != nil {
		t.Fatal(err)
	}
	if !mayPull(t, worker, "shell") {
		t.Error("an announced tool cannot be pulled")
	}
	if _, err := js.Publish(t.Context(), "evt.s1.session.main.started", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := heard.NextMsg(5 * time.Second); err != nil {
		t.Errorf("a subscription from before the change: %v", err)
	}
	if n := worker.Stats().Reconnects; n != 0 {
		t.Errorf("the worker had to reconnect %d times", n)
	}

	t.Run("they outlive a restart", func(t *testing.T) {
		s.Shutdown()
		start(t, natsd.Options{StateDir: dir})
		if !mayPull(t, connect(t, dir, access.ToolWorker), "shell") {
			t.Error("after a restart the tool cannot be pulled until the kernel announces it again")
		}
	})
	t.Run("a name that is no token is refused", func(t *testing.T) {
		if err := s.AllowOffers([]string{">"}, nil); err == nil {
			t.Error("> was allowed as a tool")
		}
	})
}

// Permissions change while workers pull, acknowledge and publish: nothing may be
// refused, lost or sent twice.
func TestOffersChangeUnderLoad(t *testing.T) {
	dir := t.TempDir()
	s := start(t, natsd.Options{StateDir: dir, Sync: natsd.SyncInterval, Tools: []string{"shell"}})
	js := apply(t, connect(t, dir, access.Kernel))
	durable(t, js, "shell")
	const n = 300
	worker := connect(t, dir, access.ToolWorker)
	denied := make(chan error, n)
	worker.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err })
	wjs, err := jetstream.New(worker)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			if _, err := js.Publish(t.Context(), fmt.Sprintf("evt.s1.tool.i%d.approved.shell", i), []byte("{}")); err != nil {
				t.Errorf("publish %d: %v", i, err)
				return
			}
		}
	})
	done := make(chan struct{})
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if err := s.AllowOffers([]string{fmt.Sprintf("tool%d", i)}, nil); err != nil {
				t.Errorf("allow offers: %v", err)
				return
			}
		}
	})
	work(t, wjs, n)
	close(done)
	wg.Wait()
	select {
	case err := <-denied:
		t.Errorf("while permissions changed: %v", err)
	default:
	}
	if n := worker.Stats().Reconnects; n != 0 {
		t.Errorf("the worker had to reconnect %d times", n)
	}
}

// work pulls n approvals, reports each, and acknowledges it.
func work(t *testing.T, js jetstream.JetStream, n int) {
	t.Helper()
	c, err := js.Consumer(t.Context(), access.StreamEvents, access.ToolDurable("shell"))
	if err != nil {
		t.Error(err)
		return
	}
	seen := map[uint64]bool{}
	for len(seen) < n {
		m, err := c.Next(jetstream.FetchMaxWait(5 * time.Second))
		if err != nil {
			t.Errorf("after %d of %d approvals: %v", len(seen), n, err)
			return
		}
		meta, err := m.Metadata()
		if err == nil && seen[meta.Sequence.Stream] {
			err = fmt.Errorf("sequence %d came twice", meta.Sequence.Stream)
		}
		if err == nil {
			_, err = js.Publish(t.Context(), fmt.Sprintf("evt.s1.tool.w%d.started", len(seen)), []byte("{}"))
		}
		if err == nil {
			err = m.DoubleAck(t.Context())
		}
		if err != nil {
			t.Errorf("approval %d: %v", len(seen), err)
			return
		}
		seen[meta.Sequence.Stream] = true
	}
}
