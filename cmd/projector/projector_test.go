package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/approval"
	"correx/internal/cli"
	"correx/internal/eventlog"
	"correx/internal/natsd"
	"correx/internal/natstest"
	"correx/internal/projection"
	"correx/internal/streams"
	"correx/pkg/audit"
	"correx/pkg/events"
)

// A bus is the embedded server with the product's streams, keys and permissions.
type bus struct {
	t     *testing.T
	state string
}

func startBus(t *testing.T) *bus {
	t.Helper()
	b := &bus{t: t, state: t.TempDir()}
	srv, err := natsd.Start(natstest.Context(t), natsd.Options{StateDir: b.state, Tools: []string{"echo"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Shutdown)
	spec, err := streams.Default()
	if err != nil {
		t.Fatal(err)
	}
	js := natstest.JetStream(t, b.connect(access.Kernel))
	plan, err := streams.MakePlan(natstest.Context(t), js, spec, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := streams.Apply(natstest.Context(t), js, plan, false); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bus) connect(r access.Role) *nats.Conn {
	b.t.Helper()
	nc, err := access.Connect(natstest.Context(b.t), access.Dial{StateDir: b.state, Name: "test", Role: r})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	return nc
}

// log is EVENTS as a role sees it.
func (b *bus) log(r access.Role) *eventlog.Log {
	b.t.Helper()
	js, err := jetstream.New(b.connect(r))
	if err != nil {
		b.t.Fatal(err)
	}
	log, err := eventlog.Open(natstest.Context(b.t), js, eventlog.Options{Source: "test"})
	if err != nil {
		b.t.Fatal(err)
	}
	return log
}

// buffer takes output from several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// projector runs the program to its end.
func (b *bus) projector(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, errs buffer
	env := cli.Env{Args: append(args, "--state", b.state), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}
	status = cli.Run(ctx, "projector", env, newRoot)
	return status, out.String(), errs.String()
}

// running runs the program until stop, which fails the test if it ends badly.
func (b *bus) running(args ...string) (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan string, 1)
	go func() {
		status, _, stderr := b.projector(ctx, args...)
		if status != cli.StatusOK {
			ended <- fmt.Sprintf("exit status %d: %s", status, stderr)
			return
		}
		ended <- ""
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if fault := <-ended; fault != "" {
				b.t.Error(fault)
			}
		})
	}
	b.t.Cleanup(stop)
	return stop
}

// query asks as a viewer does, once somebody answers.
func (b *bus) query(nc *nats.Conn, noun, request string) string {
	b.t.Helper()
	ctx := natstest.Context(b.t)
	for {
		msg, err := nc.RequestWithContext(ctx, "query."+noun, []byte(request))
		if err == nil {
			return string(msg.Data)
		}
		if ctx.Err() != nil {
			b.t.Fatalf("query.%s: %v", noun, err)
		}
	}
}

func TestRunAnnouncesProjectsAnswersAndStops(t *testing.T) {
	b := startBus(t)
	stop := b.running("--name", "p1")
	log := b.log(access.Kernel)
	started := events.SessionStarted{Ref: events.Ref{Session: "s1", ID: events.Main}, Task: "hello", Mode: events.ModePrompt}
	seq, err := log.Append(natstest.Context(t), started, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	viewer := b.connect(access.Viewer)
	if got := b.query(viewer, "sessions", fmt.Sprintf(`{"wait_for":%d}`, seq)); !strings.Contains(got, `"task":"hello"`) {
		t.Errorf("query.sessions answers %s", got)
	}
	if got := b.query(viewer, "workers", `{"wait_for":2}`); !strings.Contains(got, `"worker":"p1","role":"projector","state":"RUNNING"`) {
		t.Errorf("query.workers answers %s", got)
	}
	if status, _, stderr := b.projector(t.Context(), "run"); status != cli.StatusFailed || !strings.Contains(stderr, "another projector writes it") {
		t.Errorf("a second projector ends with %d: %s", status, stderr)
	}
	if status, _, stderr := b.projector(t.Context(), "rebuild"); status != cli.StatusFailed || !strings.Contains(stderr, "another projector writes it") {
		t.Errorf("a rebuild meanwhile ends with %d: %s", status, stderr)
	}
	stop()

	recs, err := log.Read(natstest.Context(t), events.Aggregate{Session: events.System, Kind: events.KindWorker, ID: "p1"})
	if err != nil || len(recs) != 2 {
		t.Fatalf("it announced %d facts: %v", len(recs), err)
	}
	if f, ok := recs[1].Fact.(events.WorkerStopped); !ok || f.Boot != recs[0].Fact.(events.WorkerStarted).Boot {
		t.Errorf("its last word is %+v", recs[1].Fact)
	}
	// What it signs last has its own stop in it, and is the end of the log.
	signed, err := log.Read(natstest.Context(t), audit.Checkpoints())
	if err != nil || len(signed) != 1 {
		t.Fatalf("it signed %d checkpoints: %v", len(signed), err)
	}
	if c, ok := signed[0].Fact.(events.AuditCheckpoint); !ok || c.Through != recs[1].Seq || audit.Check(c, b.key()) != nil {
		t.Errorf("its checkpoint is %+v", signed[0].Fact)
	}
	b.equalsRebuild(signed[0].Seq)
	b.verified()
}

// key is the projector's.
func (b *bus) key() string {
	b.t.Helper()
	key, err := access.ProjectorKey(b.state)
	if err != nil {
		b.t.Fatal(err)
	}
	return key
}

// verified lets the program itself compare database and stream, and then finds a
// row of a view that was edited, and a record.
func (b *bus) verified() {
	b.t.Helper()
	verify := func(want int, texts ...string) {
		b.t.Helper()
		status, stdout, stderr := b.projector(b.t.Context(), "verify", "--views")
		for _, text := range texts {
			if status != want || !strings.Contains(stdout, text) {
				b.t.Errorf("projector verify ends with %d: %s%s\nwant %d and %q", status, stdout, stderr, want, text)
			}
		}
	}
	edit := func(query string) {
		b.t.Helper()
		db, err := sql.Open("sqlite3", "file:"+projection.DefaultPath(b.state))
		if err == nil {
			_, err = db.Exec(query)
		}
		if err := errors.Join(err, db.Close()); err != nil {
			b.t.Fatal(err)
		}
	}
	verify(cli.StatusOK, "every record and every row of every table is that of the stream")
	edit(`UPDATE sessions SET task = 'something else'`)
	verify(cli.StatusFailed, "table sessions differs", "something else", "hello")
	edit(`UPDATE events SET body = '{}' WHERE seq = 2`)
	verify(cli.StatusFailed, "altered: event 2")
	if status, stdout, _ := b.projector(b.t.Context(), "verify", "--json"); status != cli.StatusFailed || !strings.Contains(stdout, `"kind": "altered"`) {
		b.t.Errorf("as JSON it ends with %d: %s", status, stdout)
	}
}

// equalsRebuild holds the database against a fresh one; both end at last.
func (b *bus) equalsRebuild(last uint64) {
	b.t.Helper()
	fresh := filepath.Join(b.t.TempDir(), "fresh.db")
	if status, _, stderr := b.projector(b.t.Context(), "rebuild", "--db", fresh); status != cli.StatusOK {
		b.t.Fatalf("rebuild: %s", stderr)
	}
	_, got, _ := b.projector(b.t.Context(), "dump")
	_, want, _ := b.projector(b.t.Context(), "dump", "--db", fresh)
	if got != want || !strings.Contains(got, fmt.Sprintf(`{"key":"checkpoint","value":"%d"}`, last)) {
		b.t.Errorf("the database\n%s\nis not that of the log\n%s", got, want)
	}
}

// An approval that the kernel did not sign stands in events, with its reason,
// and permits nothing.
func TestApprovalsAreVerified(t *testing.T) {
	b := startBus(t)
	log := b.log(access.Kernel)
	key, err := access.Signer(b.state)
	if err != nil {
		t.Fatal(err)
	}
	var last uint64
	for _, id := range []string{"good", "forged"} {
		ref := events.Ref{Session: "s1", ID: id}
		requested := events.ToolInvocationRequested{Ref: ref, Tier: events.T2, Token: "echo",
			Request: events.ToolRequest{Tool: "echo", Parameters: events.Raw(`{}`)}}
		granted := events.ApprovalGranted{Ref: ref, Token: "echo", Tool: "echo", Tier: events.T2, Policy: "p", Until: time.Now(),
			Digest: approval.Digest("echo", events.Raw(`{}`), nil, "p")}
		if id == "good" {
			if granted, err = approval.Sign(key, approval.StreamIdentity(log.Identity()), granted); err != nil {
				t.Fatal(err)
			}
		}
		first, err := log.Append(natstest.Context(t), requested, 0, "")
		if err != nil {
			t.Fatal(err)
		}
		if last, err = log.Append(natstest.Context(t), granted, first, ""); err != nil {
			t.Fatal(err)
		}
	}
	b.running()
	viewer := b.connect(access.Viewer)
	got := b.query(viewer, "invocations", fmt.Sprintf(`{"session":"s1","wait_for":%d}`, last))
	for _, want := range []string{`"invocation":"good","status":"APPROVED"`, `"invocation":"forged","status":"REQUESTED"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	_, dump, _ := b.projector(t.Context(), "dump", "--json")
	if !strings.Contains(dump, `"holds":false,"error":"approval is not signed by the kernel`) {
		t.Error("the forgery's reason is not in events")
	}
}

func TestStatus(t *testing.T) {
	b := startBus(t)
	if status, _, stderr := b.projector(t.Context(), "status"); status != cli.StatusFailed || !strings.Contains(stderr, "does not exist; start a projector") {
		t.Errorf("without a database it ends with %d: %s", status, stderr)
	}
	if status, _, stderr := b.projector(t.Context(), "rebuild"); status != cli.StatusOK {
		t.Fatalf("rebuild of an empty log: %s", stderr)
	}
	log := b.log(access.Kernel)
	f := events.SessionStarted{Ref: events.Ref{Session: "s1", ID: events.Main}, Task: "hello", Mode: events.ModePrompt}
	if _, err := log.Append(natstest.Context(t), f, 0, ""); err != nil {
		t.Fatal(err)
	}
	status, out, stderr := b.projector(t.Context(), "status", "--json")
	var s struct {
		Applied, Last, Lag uint64
		Running            bool
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil || status != cli.StatusOK {
		t.Fatalf("status: %v, %s%s", err, out, stderr)
	}
	if s.Applied != 0 || s.Last != 1 || s.Lag != 1 || s.Running {
		t.Errorf("status says %+v", s)
	}
	if _, out, _ := b.projector(t.Context(), "status"); !strings.Contains(out, "no projector runs") || !strings.Contains(out, "behind    1") {
		t.Errorf("status says %s", out)
	}
}

func TestUsage(t *testing.T) {
	b := &bus{t: t, state: t.TempDir()}
	for _, args := range [][]string{{"walk"}, {"run", "there"}, {"dump", "--colour"}, {"run", "--name", "a b"}, {"backup"}, {"backup", ""}} {
		if status, _, stderr := b.projector(t.Context(), args...); status != cli.StatusUsage {
			t.Errorf("projector %s ends with %d: %s", strings.Join(args, " "), status, stderr)
		}
	}
	for _, sub := range []string{"run", "rebuild", "backup", "dump", "status", "verify"} {
		if status, out, _ := b.projector(t.Context(), sub, "--help"); status != cli.StatusOK || !strings.Contains(out, "--db") {
			t.Errorf("projector %s --help ends with %d: %s", sub, status, out)
		}
	}
}
