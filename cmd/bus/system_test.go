package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"correx/internal/cli"
	"correx/internal/config"
	"correx/internal/toolworker"
	"correx/internal/workerhome"
	"correx/pkg/events"
	"correx/pkg/sandbox"
)

// TestMain lets the test program be the stage of a sandbox, as tool-worker is, and
// an MCP server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == mcpServerArg {
		mcpServer()
		return
	}
	os.Exit(m.Run())
}

// A machine is a state directory with a server, a kernel and a tool-worker,
// all in this process.
type machine struct {
	t     *testing.T
	state string
	work  string // where file tools may write
}

const machineConfig = `
tools:
  echo: {enabled: true, tier: T2}
  file_write: {enabled: true, allowed_paths: [work]}
  file_edit: {enabled: true, allowed_paths: [work]}
worker: {ack_wait: 2s}
kernel: {command_wait: 1s}
`

func newMachine(t *testing.T) *machine { t.Helper(); return newMachineWith(t, nil) }

// newMachineWith has variables besides the file.
func newMachineWith(t *testing.T, vars map[string]string) *machine {
	t.Helper()
	m := &machine{t: t, state: t.TempDir()}
	m.work = filepath.Join(m.state, "work")
	if err := os.Mkdir(m.work, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.state, "correx.yaml"), []byte(machineConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Read(config.Source{State: m.state, Lookup: func(k string) (string, bool) { v, ok := vars[k]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	m.offeredBefore()
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	t.Cleanup(func() { stop(); work.Wait() })
	quiet := slog.New(slog.DiscardHandler)
	work.Go(func() {
		if err := serve(ctx, cfg, "kernel", quiet); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	if err := awaitKernel(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	work.Go(func() { m.worker(ctx, cfg, quiet) })
	m.until(func() bool {
		return strings.Contains(m.run("replay", "--kind", "worker").stdout, "tool-worker started")
	})
	return m
}

// offeredBefore makes the server know the worker's tools, as it does after a
// restart, so that it need not change permissions while clients come and go: the
// server's own code races there with a client that connects, and the race detector
// sees it, for here server and clients are one process.
func (m *machine) offeredBefore() {
	m.t.Helper()
	store := filepath.Join(m.state, server.JetStreamStoreDir)
	if err := os.MkdirAll(store, 0o700); err != nil {
		m.t.Fatal(err)
	}
	offers := `{"tools":["draft","draft_commit","echo","file_edit","file_write"],"models":null}`
	if err := os.WriteFile(filepath.Join(store, "offers.json"), []byte(offers), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) worker(ctx context.Context, cfg config.Config, log *slog.Logger) {
	runner, err := sandbox.NewRunner(sandbox.RunnerOptions{})
	if err != nil {
		m.t.Error(err)
		return
	}
	home, err := workerhome.Open(cfg.State, events.RoleToolWorker, "w1")
	if err != nil {
		m.t.Error(err)
		return
	}
	defer home.Close()
	o, err := toolworker.FromConfig(cfg, home, runner, log)
	if err != nil {
		m.t.Error(err)
		return
	}
	o.Version = cli.Version
	o.Tools = append(o.Tools, draft{}, draftCommit{})
	if err := toolworker.Run(ctx, o); err != nil {
		m.t.Errorf("tool-worker: %v", err)
	}
}

// until waits for a condition that others bring about.
func (m *machine) until(done func() bool) {
	m.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(20 * time.Second); ; {
		if done() {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			m.t.Fatal("it does not come about")
		}
	}
}

// An outcome is how a command ended.
type outcome struct {
	status         int
	stdout, stderr string
}

// A call is a command to run, with a person at the terminal or not.
type call struct {
	args  []string
	keys  cli.Keys
	stdin string
	vars  map[string]string
	out   *lockedBuffer // to read stdout meanwhile; nil: only at the end
	errs  *lockedBuffer // likewise stderr
}

func (m *machine) run(args ...string) outcome { m.t.Helper(); return m.do(call{args: args}) }

func (m *machine) do(c call) outcome {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	return m.doContext(ctx, c)
}

func (m *machine) doContext(ctx context.Context, c call) outcome {
	out, errs := c.out, c.errs
	if out == nil {
		out = &lockedBuffer{}
	}
	if errs == nil {
		errs = &lockedBuffer{}
	}
	env := cli.Env{
		Args: append([]string{"--state", m.state}, c.args...), Stdin: strings.NewReader(c.stdin),
		Stdout: out, Stderr: errs, Keys: c.keys,
		Lookup: func(k string) (string, bool) { v, ok := c.vars[k]; return v, ok },
	}
	status := cli.Run(ctx, "bus", env, newRoot)
	return outcome{status, out.String(), errs.String()}
}

// want fails the test unless a command ended so and printed these.
func (m *machine) want(o outcome, status int, texts ...string) outcome {
	m.t.Helper()
	all := o.stdout + o.stderr
	for _, text := range texts {
		if !strings.Contains(all, text) {
			m.t.Errorf("nothing printed has %q", text)
		}
	}
	if o.status != status || m.t.Failed() {
		m.t.Fatalf("status %d, want %d\nstdout:\n%s\nstderr:\n%s", o.status, status, o.stdout, o.stderr)
	}
	return o
}

// A lockedBuffer may be written by one goroutine and read by another.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A person answers each question with the next of what is planned, and then
// says nothing.
type person struct {
	mu    sync.Mutex
	plan  []string // "a", "r:reason"
	asked int
	line  string
}

func (p *person) Key(ctx context.Context) (rune, error) {
	p.mu.Lock()
	p.asked++
	if len(p.plan) == 0 {
		p.mu.Unlock()
		<-ctx.Done()
		return 0, ctx.Err()
	}
	defer p.mu.Unlock()
	next := p.plan[0]
	p.plan = p.plan[1:]
	if next == "EOF" {
		return 0, fmt.Errorf("read the terminal: %w", io.EOF)
	}
	key, line, _ := strings.Cut(next, ":")
	p.line = line
	return rune(key[0]), nil
}

func (p *person) Line(context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.line, nil
}

func (p *person) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func says(plan ...string) *person { return &person{plan: plan} }
