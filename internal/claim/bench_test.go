package claim_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"correx/internal/approval"
	"correx/internal/claim"
	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/internal/session"
	"correx/pkg/events"
)

// ackWait is that of the tests: what takes an ack wait takes this long.
const ackWait = 90 * time.Millisecond

// A bench is a real log with one approved invocation on it.
type bench struct {
	*testing.T
	ctx context.Context
	log *eventlog.Log
	ask *switchboard
	a   events.Aggregate
	seq uint64 // of the approval, or of the request of an inference
}

func newBench(t *testing.T) *bench {
	t.Parallel()
	return newBenchSerial(t)
}

func newBenchSerial(t *testing.T) *bench {
	bus := natstest.Server(t)
	js := bus.JetStream(t)
	natstest.Streams(t, js, 1)
	ctx := natstest.Context(t)
	log, err := eventlog.Open(ctx, js, eventlog.Options{
		Source: "test", Verify: func(events.Record) error { return nil }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{T: t, ctx: ctx, log: log, ask: &switchboard{}}
}

// approved puts an invocation on the log whose approval ends in until.
func (b *bench) approved(until time.Duration) *bench {
	b.a = events.Aggregate{Session: "s1", Kind: events.KindTool, ID: "t1-0"}
	params := events.Raw(`{"text":"x"}`)
	b.append(events.ToolInvocationRequested{
		Ref: b.a.Ref(), Token: "echo", Tier: events.T0,
		Request: events.ToolRequest{Invocation: "t1-0", Session: "s1", Tool: "echo", Parameters: params},
	})
	b.seq = b.append(events.ApprovalGranted{
		Ref: b.a.Ref(), Token: "echo", Tool: "echo", Policy: "p", By: "policy",
		Digest: approval.Digest("echo", params, nil, "p"), Until: time.Now().Add(until),
	})
	return b
}

// inference puts a requested inference on the log.
func (b *bench) inference() *bench {
	b.a = events.Aggregate{Session: "s1", Kind: events.KindInference, ID: "t1"}
	b.seq = b.append(events.InferenceRequested{Ref: b.a.Ref(), Model: "m", ModelToken: "m"})
	return b
}

func (b *bench) records() []events.Record {
	b.Helper()
	recs, err := b.log.Read(b.ctx, b.a)
	if err != nil {
		b.Fatal(err)
	}
	return recs
}

// append writes f behind whatever is last.
func (b *bench) append(f events.Fact) uint64 {
	b.Helper()
	for {
		var last uint64
		if recs := b.records(); len(recs) > 0 {
			last = recs[len(recs)-1].Seq
		}
		seq, err := b.log.Append(b.ctx, f, last, "")
		if errors.Is(err, eventlog.ErrConflict) {
			continue
		}
		if err != nil {
			b.Fatal(err)
		}
		return seq
	}
}

// startedBy puts another worker's claim on the log.
func (b *bench) startedBy(w events.WorkerID, attempt int) events.Fence {
	c := events.Claim{Worker: w, Boot: "old", Nonce: "nonce-of-" + string(w), Attempt: attempt}
	var f events.Fact = events.ToolExecutionStarted{Ref: b.a.Ref(), Claim: c}
	if b.a.Kind == events.KindInference {
		f = events.InferenceStarted{Ref: b.a.Ref(), Claim: c}
	}
	return events.Fence{Started: b.append(f), Nonce: c.Nonce}
}

func (b *bench) delivery() claim.Delivery { return claim.Delivery{Aggregate: b.a, Seq: b.seq} }

// story is what is on the log, as the tokens of the subjects.
func (b *bench) story() []string {
	var s []string
	for _, r := range b.records() {
		_, n, _, err := events.ParseSubject(r.Subject)
		if err != nil {
			b.Fatal(err)
		}
		s = append(s, n.Token())
	}
	return s
}

func (b *bench) wantStory(want ...string) {
	b.Helper()
	got := b.story()
	if len(got) != len(want) {
		b.Fatalf("log has %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			b.Fatalf("log has %q, want %q", got, want)
		}
	}
}

func (b *bench) want(o claim.Outcome, err error, want claim.Outcome) {
	b.Helper()
	if o != want {
		b.Fatalf("outcome is %s (%v), want %s", o, err, want)
	}
}

// failed is the end on the log, which must be a failure that holds.
func (b *bench) failed() events.ToolExecutionFailed {
	b.Helper()
	i := session.FoldInvocation(b.records())
	f, ok := i.End.(events.ToolExecutionFailed)
	if !ok {
		b.Fatalf("end is %#v, want a failure; log has %q", i.End, b.story())
	}
	return f
}

// worker is one process under test.
func (b *bench) worker(id events.WorkerID) (*claim.Claims, *faults) {
	b.Helper()
	f := &faults{Log: b.log}
	c, err := claim.New(claim.Config{
		Worker: id, Boot: "boot-" + string(id), Log: f, Ask: b.ask, AckWait: ackWait, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ask.plug(id, c)
	return c, f
}

// A switchboard connects workers; one that is unplugged does not answer.
type switchboard struct {
	mu    sync.Mutex
	on    map[events.WorkerID]*claim.Claims
	asked int
}

func (s *switchboard) plug(id events.WorkerID, c *claim.Claims) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on == nil {
		s.on = map[events.WorkerID]*claim.Claims{}
	}
	s.on[id] = c
}

func (s *switchboard) questions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// AskRunning implements claim.Asker.
func (s *switchboard) AskRunning(_ context.Context, w events.WorkerID, q claim.Question) (claim.Answer, error) {
	s.mu.Lock()
	s.asked++
	c := s.on[w]
	s.mu.Unlock()
	if c == nil {
		return claim.Answer{}, errors.New("nobody answers")
	}
	return c.Running(q), nil
}

var errLost = errors.New("the answer was lost")

// faults is a log whose appends go wrong as the test says.
type faults struct {
	claim.Log
	mu     sync.Mutex
	before map[string]func()               // by fact, once: happens just before the append
	lose   map[string]int                  // appends whose answer is lost
	fail   map[string]int                  // appends that never arrive
	late   map[string]func(func())         // gets the append that arrives later; the caller hears an error
	seen   func(name string, after uint64) // each append
}

// Append implements claim.Log.
func (f *faults) Append(ctx context.Context, fact events.Fact, after uint64, cause string) (uint64, error) {
	name := fact.FactName().Token()
	f.mu.Lock()
	before, seen, late := f.before[name], f.seen, f.late[name]
	delete(f.before, name)
	lose, fail := f.lose[name] > 0, f.fail[name] > 0
	if lose {
		f.lose[name]--
	} else if fail {
		f.fail[name]--
	}
	f.mu.Unlock()
	if seen != nil {
		seen(name, after)
	}
	if before != nil {
		before()
	}
	switch {
	case late != nil:
		late(func() { _, _ = f.Log.Append(ctx, fact, after, cause) })
		return 0, errLost
	case lose:
		_, _ = f.Log.Append(ctx, fact, after, cause)
		return 0, errLost
	case fail:
		return 0, errLost
	}
	return f.Log.Append(ctx, fact, after, cause)
}

// workFunc is claim.Work.
type workFunc func(ctx context.Context, t claim.Task) events.Fact

func (w workFunc) Run(ctx context.Context, t claim.Task) events.Fact { return w(ctx, t) }

// tool is a job that touches nothing, and counts its runs.
func tool(runs *counter, work workFunc) claim.Job {
	if work == nil {
		work = func(_ context.Context, t claim.Task) events.Fact { return completed(t) }
	}
	return claim.Job{Rules: claim.ToolRules{Worker: "w1"}, Work: workFunc(func(ctx context.Context, t claim.Task) events.Fact {
		runs.add()
		return work(ctx, t)
	})}
}

func completed(t claim.Task) events.Fact {
	return events.ToolExecutionCompleted{Ref: t.State.Aggregate.Ref(), Fence: t.Fence()}
}

func failedFor(t claim.Task, reason string) events.Fact {
	return events.ToolExecutionFailed{Ref: t.State.Aggregate.Ref(), Fence: t.Fence(), Reason: reason, Effects: events.EffectsNone}
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) get() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// memory is a journal of one file.
type memory struct {
	mu      sync.Mutex
	entries map[events.Aggregate]claim.Entry
	inPlace bool
	undone  int
	cleared int
}

func newMemory() *memory { return &memory{entries: map[events.Aggregate]claim.Entry{}} }

// touching makes a job of work that is journalled: it applies an effect, then
// returns what end says.
func touching(m *memory, runs *counter, end workFunc) claim.Job {
	j := tool(runs, func(ctx context.Context, t claim.Task) events.Fact {
		e := m.begin(t.State.Aggregate, t.Fence())
		f := end(ctx, t)
		if _, ok := f.(events.ToolExecutionFailed); ok {
			_, _ = m.Undo(ctx, e)
		}
		_ = m.Result(e, f)
		return f
	})
	j.Journal = m
	return j
}

func (m *memory) begin(a events.Aggregate, f events.Fence) claim.Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inPlace = true
	m.entries[a] = claim.Entry{Aggregate: a, Fence: f}
	return m.entries[a]
}

func (m *memory) Entry(a events.Aggregate) (claim.Entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[a]
	return e, ok
}

func (m *memory) Undo(context.Context, claim.Entry) (claim.Undone, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inPlace = false
	m.undone++
	return claim.Undone{
		Files:   []events.RecoveredFile{{Path: "/f", Effects: events.EffectsRolledBack}},
		Effects: events.EffectsRolledBack,
	}, nil
}

func (m *memory) Result(e claim.Entry, end events.Fact) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Result = end
	m.entries[e.Aggregate] = e
	return nil
}

func (m *memory) Forget(e claim.Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.entries, e.Aggregate)
	m.cleared++
	return nil
}

func (m *memory) state() (entries int, inPlace bool, undone int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.entries), m.inPlace, m.undone
}
