package natsd_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/natsd"
)

// lines is a log whose lines can be waited for.
type lines struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.buf.Write(p)
}

func (l *lines) await(t *testing.T, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for {
		l.mu.Lock()
		got := l.buf.String()
		l.mu.Unlock()
		if strings.Contains(got, want) {
			return
		}
		select {
		case <-l.more:
		case <-ctx.Done():
			t.Fatalf("the log does not say %q:\n%s", want, got)
		}
	}
}

func TestConnectWaitsForTheServer(t *testing.T) {
	dir := t.TempDir()
	if err := access.EnsureKeys(dir); err != nil {
		t.Fatal(err)
	}
	connected := make(chan error, 1)
	go func() {
		nc, err := access.Connect(t.Context(), access.Dial{StateDir: dir, Role: access.Projector})
		if err == nil {
			nc.Close()
		}
		connected <- err
	}()
	start(t, natsd.Options{StateDir: dir})
	if err := <-connected; err != nil {
		t.Error(err)
	}
}

func TestConnectGivesUpWithItsContext(t *testing.T) {
	dir := t.TempDir()
	if err := access.EnsureKeys(dir); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := access.Connect(ctx, access.Dial{StateDir: dir, Role: access.Projector})
	if err == nil || !strings.Contains(err.Error(), "start `bus serve`") {
		t.Errorf("without a server: %v", err)
	}
}

func TestADeniedSubjectIsNamedInTheLog(t *testing.T) {
	dir := t.TempDir()
	start(t, natsd.Options{StateDir: dir})
	log := newLines()
	nc, err := access.Connect(t.Context(), access.Dial{
		StateDir: dir, Role: access.Viewer, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.Publish("cmd.operator.session.start", nil); err != nil {
		t.Fatal(err)
	}
	log.await(t, `role=viewer connection="" operation=publish subject=cmd.operator.session.start`)
}

// While the server is away nothing is kept for later: a publish fails at once.
// When it is back, on the same address, so is the connection.
func TestALostConnectionComesBackAndSendsNothingLate(t *testing.T) {
	dir := t.TempDir()
	s := start(t, natsd.Options{StateDir: dir})
	log := newLines()
	nc, err := access.Connect(t.Context(), access.Dial{
		StateDir: dir, Role: access.Kernel, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js := apply(t, nc)
	gone := nc.StatusChanged(nats.RECONNECTING)
	s.Shutdown()
	<-gone
	if err := nc.Publish("evt.s1.session.main.started", nil); err == nil {
		t.Error("a publish without a server was taken")
	}
	start(t, natsd.Options{StateDir: dir})
	log.await(t, "connected again")
	st, err := js.Stream(t.Context(), access.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if n := st.CachedInfo().State.Msgs; n != 0 {
		t.Errorf("EVENTS holds %d messages, want none", n)
	}
}

// A server of one's own, with the configuration that is printed, knows the same
// roles.
func TestServerConfigServesTheRoles(t *testing.T) {
	dir := t.TempDir()
	if err := access.EnsureKeys(dir); err != nil {
		t.Fatal(err)
	}
	text, err := access.ServerConfig(dir, []string{"shell"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	conf := "listen: 127.0.0.1:-1\nmax_payload: 1MB\njetstream { store_dir: \"" + t.TempDir() + "\", sync_interval: always }\n" + text
	path := filepath.Join(dir, "nats-server.conf")
	if err := os.WriteFile(path, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	opts.NoSigs, opts.NoLog = true, true
	n, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(10 * time.Second) {
		t.Fatal("server is not ready")
	}
	dial := func(r access.Role) *nats.Conn {
		nc, err := access.Connect(t.Context(), access.Dial{StateDir: dir, URL: n.ClientURL(), Role: r})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	var js jetstream.JetStream = apply(t, dial(access.Kernel))
	durable(t, js, "shell")
	worker := dial(access.ToolWorker)
	if !mayPull(t, worker, "shell") {
		t.Error("a worker cannot pull")
	}
	if err := worker.Publish("evt.s1.tool.t1-0.approved.shell", nil); err != nil {
		t.Fatal(err)
	}
	if err := worker.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := worker.LastError(); err == nil || !strings.Contains(err.Error(), "approved.shell") {
		t.Errorf("a worker published an approval (%v)", err)
	}
}
