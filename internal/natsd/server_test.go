package natsd_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/natsd"
)

func start(t *testing.T, o natsd.Options) *natsd.Server {
	t.Helper()
	if o.StateDir == "" {
		o.StateDir = t.TempDir()
	}
	s, err := natsd.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	return s
}

func connect(t *testing.T, dir string, r access.Role) *nats.Conn {
	t.Helper()
	nc, err := access.Connect(t.Context(), access.Dial{StateDir: dir, Name: t.Name(), Role: r})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func stream(t *testing.T, nc *nats.Conn, name string, subjects ...string) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: subjects})
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestARestartKeepsStreamsKeysAndAddress(t *testing.T) {
	dir := t.TempDir()
	s := start(t, natsd.Options{StateDir: dir})
	addr := s.ClientURL()
	nc := connect(t, dir, access.Kernel)
	js := stream(t, nc, "EVENTS", "evt.>")
	if _, err := js.Publish(t.Context(), "evt.s1.session.main.started", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()

	var log bytes.Buffer
	s = start(t, natsd.Options{StateDir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if log.Len() > 0 {
		t.Errorf("a restart has something to say:\n%s", &log)
	}
	if s.ClientURL() != addr {
		t.Errorf("address was %s, is %s", addr, s.ClientURL())
	}
	js, err := jetstream.New(connect(t, dir, access.Kernel))
	if err != nil {
		t.Fatal(err)
	}
	es, err := js.Stream(t.Context(), "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	if n := es.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("EVENTS holds %d messages, want 1", n)
	}
}

func TestTheStoreBelongsToOneServer(t *testing.T) {
	dir := t.TempDir()
	s := start(t, natsd.Options{StateDir: dir})
	_, err := natsd.Start(t.Context(), natsd.Options{StateDir: dir})
	var inUse *natsd.InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Fatalf("second start: %v; want that process %d has the store", err, os.Getpid())
	}
	if !strings.Contains(err.Error(), "is in use by process") {
		t.Errorf("error does not name the holder: %v", err)
	}
	connect(t, dir, access.Operator) // the first still serves
	s.Shutdown()
	s.Shutdown()
	start(t, natsd.Options{StateDir: dir})
}

func TestAPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()

	t.Run("asked for by number", func(t *testing.T) {
		_, err := natsd.Start(t.Context(), natsd.Options{StateDir: dir, Port: port})
		if err == nil || !strings.Contains(err.Error(), "address already in use") {
			t.Fatalf("start on a taken port: %v", err)
		}
		if _, err := access.URL(dir); err == nil {
			t.Error("a start that failed wrote nats.url")
		}
	})
	t.Run("that of last time", func(t *testing.T) {
		if err := access.WriteURL(dir, "nats://"+l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		s := start(t, natsd.Options{StateDir: dir})
		u, err := url.Parse(s.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		if u.Host == l.Addr().String() {
			t.Fatalf("serves on the taken %s", u.Host)
		}
		connect(t, dir, access.Viewer)
	})
}

func TestAStartThatFailsLeavesNothingRunning(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("not now"))
	if _, err := natsd.Start(ctx, natsd.Options{StateDir: dir}); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Fatalf("start with a context that is done: %v", err)
	}
	if err := os.WriteFile(dir+"/jetstream/offers.json", []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := natsd.Start(t.Context(), natsd.Options{StateDir: dir}); err == nil {
		t.Fatal("start with unreadable offers succeeded")
	}
	if err := os.Remove(dir + "/jetstream/offers.json"); err != nil {
		t.Fatal(err)
	}
	start(t, natsd.Options{StateDir: dir}) // lock and port are free again
}

func TestNobodyComesInWithoutAKey(t *testing.T) {
	dir := t.TempDir()
	s := start(t, natsd.Options{StateDir: dir})
	if _, err := nats.Connect(s.ClientURL()); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("connect without a key: %v", err)
	}
	other := t.TempDir()
	if err := access.EnsureKeys(other); err != nil {
		t.Fatal(err)
	}
	_, err := access.Connect(t.Context(), access.Dial{StateDir: other, URL: s.ClientURL(), Role: access.Kernel})
	if !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("connect with a stranger's key: %v", err)
	}
}

func TestOptionsNameEveryFault(t *testing.T) {
	_, err := natsd.Start(t.Context(), natsd.Options{Port: -1, Sync: "never", Logger: slog.New(slog.DiscardHandler)})
	for _, want := range []string{"no state directory", `sync is "never"`, "port is -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}
