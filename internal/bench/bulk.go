package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/approval"
	"correx/internal/eventlog"
	"correx/internal/natsd"
	"correx/internal/projection"
	"correx/internal/signedlog"
	"correx/pkg/events"
)

// productArg makes this program the embedded server, with the state directory
// behind it, and no kernel.
const productArg = "product-server"

func productServer(state string) error {
	s, err := natsd.Start(context.Background(), natsd.Options{StateDir: state, Sync: natsd.SyncInterval})
	if err != nil {
		return err
	}
	untilTerminated(s.ClientURL())
	s.Shutdown()
	return nil
}

// A bulk is a long log of agents at work, behind the product's server.
type bulk struct {
	state string
	bin   string
	last  uint64
	stop  func()
}

// bulk makes the log, once for all rows that need it.
func (b *bench) bulk(ctx context.Context) (*bulk, error) {
	if b.log != nil {
		return b.log, nil
	}
	state, err := b.scratch("bulk")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "  making a log of %d records ...\n", b.events)
	b.log, err = newBulk(ctx, state, filepath.Join(b.root, "bin"), uint64(b.events))
	return b.log, err
}

func (b *bench) close() {
	if b.log != nil {
		b.log.stop()
	}
}

// newBulk writes the log through a bare server and then lets the product's serve
// it.
func newBulk(ctx context.Context, state, bin string, records uint64) (*bulk, error) {
	if err := access.EnsureKeys(state); err != nil {
		return nil, err
	}
	f, err := newFloorIn(ctx, state, "interval")
	if err != nil {
		return nil, err
	}
	err = fill(ctx, f.js, state, records)
	f.close()
	if err != nil {
		return nil, err
	}
	_, stop, err := startSelf(productArg, state)
	if err != nil {
		return nil, err
	}
	return &bulk{state, bin, records, stop}, nil
}

// fill publishes sessions of ten turns each.
func fill(ctx context.Context, js jetstream.JetStream, state string, records uint64) error {
	log, err := eventlog.Open(ctx, js, eventlog.Options{Source: "bench"})
	if err != nil {
		return err
	}
	key, err := access.Signer(state)
	if err != nil {
		return err
	}
	signer, err := approval.NewSigner(key)
	if err != nil {
		return err
	}
	p := &publisher{js: js, last: map[events.Aggregate]uint64{}, signer: signer, id: approval.StreamIdentity(log.Identity())}
	for n := 0; p.seq < records; n++ {
		if err := p.turn(n, records); err != nil {
			return fmt.Errorf("fill the log: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
		return ctx.Err()
	}
	last, err := log.Last(ctx)
	if err == nil && last != records {
		err = fmt.Errorf("the log has %d records, not %d", last, records)
	}
	return err
}

// A publisher is the only one of its stream, and so knows each sequence.
type publisher struct {
	js     jetstream.JetStream
	seq    uint64
	last   map[events.Aggregate]uint64
	signer *approval.Signer
	id     approval.StreamIdentity
}

func (p *publisher) add(f events.Fact) error {
	a := events.AggregateOf(f)
	subject, h, data, err := events.Encode(f, events.Source{Name: "bench"}, p.last[a], time.Now())
	if err != nil {
		return err
	}
	if _, err := p.js.PublishMsgAsync(&nats.Msg{Subject: subject, Header: nats.Header(h), Data: data}, jetstream.WithStallWait(time.Minute)); err != nil {
		return err
	}
	p.seq++
	p.last[a] = p.seq
	return nil
}

// parameters are as large as a small file that is written.
var parameters = events.Raw(`{"text":"` + strings.Repeat("x", 1000) + `"}`)

const policy = "policy1"

// A turn is what a session of an agent puts on the log to have one tool run: the
// model is asked and answers, a person approves, the tool runs.
type turn struct {
	p                 *publisher
	n                 int
	main, infer, tool events.Ref
	by                events.Decision
	until             time.Time
	digest            string
}

// turn publishes the n-th turn, ten to a session, as far as there is room.
func (p *publisher) turn(n int, most uint64) error {
	session := events.SessionID(fmt.Sprintf("s%d", n/10))
	now := time.Now()
	t := &turn{p: p, n: n, until: now.Add(time.Hour), digest: approval.Digest("echo", parameters, nil, policy),
		main: events.Ref{Session: session, ID: events.Main}, infer: events.Ref{Session: session, ID: fmt.Sprintf("t%d", n%10)},
		tool: events.Ref{Session: session, ID: fmt.Sprintf("t%d-0", n%10)},
		by:   events.Decision{DecidedAt: 1, Now: now, Actor: "operator", Command: events.CommandID(fmt.Sprintf("c%d", n))}}
	steps := []func() events.Fact{t.stage, t.asks, t.taken, t.answers, t.requested, t.asked, t.granted, t.started, t.completed}
	if n%10 == 0 {
		steps = append([]func() events.Fact{t.begins}, steps...)
	}
	for _, step := range steps {
		if p.seq == most {
			break
		}
		if err := p.add(step()); err != nil {
			return err
		}
	}
	p.forget()
	return nil
}

func (t *turn) begins() events.Fact {
	return events.SessionStarted{Ref: t.main, Decision: t.by, Task: "call echo ten times", Model: "m", Mode: events.ModePrompt}
}

func (t *turn) stage() events.Fact {
	return events.StageEntered{Ref: t.main, Decision: events.Decision{DecidedAt: 1, Now: t.by.Now}, Stage: events.StageID("turn-" + t.infer.ID)}
}

func (t *turn) asks() events.Fact {
	return events.InferenceRequested{Ref: t.infer, Decision: events.Decision{DecidedAt: 1, Now: t.by.Now}, Model: "m", ModelToken: "m", Through: t.p.seq,
		Tools: []events.ToolRef{{Name: "echo", Digest: "offer"}}, Deadline: t.until}
}

func (t *turn) taken() events.Fact {
	return events.InferenceStarted{Ref: t.infer, Claim: events.Claim{Worker: "m1", Boot: "b", Nonce: "n", Attempt: 1}}
}

func (t *turn) answers() events.Fact {
	return events.InferenceCompleted{Ref: t.infer, Fence: events.Fence{Started: t.p.seq, Nonce: "n"}, Finish: events.FinishStop,
		Reply: events.Reply{Text: string(parameters), Calls: []events.ToolCall{{Tool: "echo", Arguments: parameters}}},
		Usage: events.TokenUsage{Prompt: 900, Completion: 300, Total: 1200}, Latency: time.Second, PromptDigest: t.digest, Tokenizer: "server"}
}

func (t *turn) requested() events.Fact {
	return events.ToolInvocationRequested{Ref: t.tool, Decision: t.by, Tier: events.T2, Token: "echo", Offer: "offer",
		Request: events.ToolRequest{Invocation: events.ToolInvocationID(t.tool.ID), Session: t.tool.Session, Stage: "turn-1", Tool: "echo", Parameters: parameters}}
}

func (t *turn) asked() events.Fact {
	return events.ApprovalRequested{Ref: t.tool, Decision: t.by, Token: "echo", Tool: "echo", Tier: events.T2, Digest: t.digest, Policy: policy,
		Why: "mode prompt", Deadline: t.until}
}

func (t *turn) granted() events.Fact {
	return t.p.signer.Sign(t.p.id, events.ApprovalGranted{Ref: t.tool, Decision: t.by, Token: "echo", Tool: "echo", Tier: events.T2, Digest: t.digest,
		Policy: policy, By: "person", Scope: events.ScopeOnce, Reason: "looks fine", Until: t.until})
}

func (t *turn) started() events.Fact {
	return events.ToolExecutionStarted{Ref: t.tool, Claim: events.Claim{Worker: "w1", Boot: "b", Nonce: "n", Attempt: 1}, Isolation: events.IsolationFull}
}

func (t *turn) completed() events.Fact {
	return events.ToolExecutionCompleted{Ref: t.tool, Fence: events.Fence{Started: t.p.seq, Nonce: "n"}, Receipt: events.ToolReceipt{
		Output: "some words that can be searched for", Duration: time.Millisecond, Tier: events.T2, Time: t.until, Isolation: events.IsolationFull}}
}

// forget drops what no later record builds on.
func (p *publisher) forget() {
	if len(p.last) > 10_000 {
		clear(p.last)
	}
}

// A ran is how one of the product's programs ran.
type ran struct {
	took   time.Duration
	memory int64 // bytes, at the most
	out    []byte
}

// program runs one of them to its end.
func (l *bulk) program(ctx context.Context, name string, args ...string) (ran, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(l.bin, name), args...)
	cmd.Env = append(os.Environ(), "CORREX_STATE="+l.state, "CORREX_LOG_LEVEL=warn")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return ran{}, err
	}
	memory, stop := watchMemory(cmd.Process.Pid)
	err := cmd.Wait()
	r := ran{took: time.Since(begin), out: out.Bytes()}
	stop()
	if r.memory = <-memory; err != nil {
		return r, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, r.out)
	}
	return r, nil
}

// watchMemory looks again and again how much memory a process has had at the most.
// (What wait reports of a child has its parent's in it.)
func watchMemory(pid int) (most <-chan int64, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	out := make(chan int64, 1)
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		var most int64
		for ; ctx.Err() == nil; <-tick.C {
			most = max(most, residentMost(pid))
		}
		out <- most
	}()
	return out, cancel
}

// residentMost is VmHWM of a process, in bytes, or 0.
func residentMost(pid int) (n int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscanf(rest, "%d kB", &n); err != nil {
		return 0
	}
	return n << 10
}

// maxMemory is what rebuild and verify may take, whatever the log's length.
const maxMemory = 200 << 20

func (r ran) flat(what string) error {
	fmt.Fprintf(os.Stderr, "  %s took %s and %d MiB\n", what, r.took.Round(time.Millisecond), r.memory>>20)
	if r.memory >= maxMemory {
		return fmt.Errorf("%s took %d MiB of memory, at most %d are allowed", what, r.memory>>20, maxMemory>>20)
	}
	return nil
}

// rebuild projects the whole log with the product's own program.
func (l *bulk) rebuild(ctx context.Context, db string) (ran, error) {
	r, err := l.program(ctx, "projector", "rebuild", "--json", "--db", db)
	if err != nil {
		return r, err
	}
	var said struct {
		Records uint64 `json:"records"`
		Millis  int64  `json:"duration_ms"`
	}
	if err := json.Unmarshal(r.out, &said); err != nil {
		return r, err
	}
	if said.Records < l.last {
		return r, fmt.Errorf("projector rebuilt %d records of %d", said.Records, l.last)
	}
	return r, r.flat("rebuild")
}

// audit verifies the whole log with the product's own program.
func (l *bulk) audit(ctx context.Context) (ran, error) {
	r, err := l.program(ctx, "bus", "audit", "verify", "--json")
	if err != nil {
		return r, err
	}
	return r, r.flat("verify")
}

// open connects as the projector does.
func (l *bulk) open(ctx context.Context) (*nats.Conn, jetstream.JetStream, *eventlog.Log, error) {
	nc, err := access.Connect(ctx, access.Dial{StateDir: l.state, Name: "bench", Role: access.Projector})
	if err != nil {
		return nil, nil, nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, nil, err
	}
	log, err := signedlog.Open(ctx, js, l.state, "bench", slog.New(slog.DiscardHandler))
	if err != nil {
		nc.Close()
		return nil, nil, nil, err
	}
	return nc, js, log, nil
}

// sign publishes a checkpoint of a database of the log.
func (l *bulk) sign(ctx context.Context, path string) error {
	nc, _, log, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	key, err := access.CheckpointSigner(l.state)
	if err != nil {
		return err
	}
	db, err := projection.Open(ctx, path, projection.Identity(log.Identity()))
	if err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	p := projection.New(db, log, projection.Batch{}, quiet)
	err = projection.NewCheckpointer(p, log, key, projection.Due{}, quiet).Publish(ctx)
	return errors.Join(err, db.Close())
}
