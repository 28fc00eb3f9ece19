package claim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"correx/internal/approval"
	"correx/internal/claim"
	"correx/internal/session"
	"correx/internal/testenv"
	"correx/pkg/events"
)

const simAckWait = 300 * time.Millisecond

// What a simulated invocation is.
type kind int

const (
	touches    kind = iota // keeps a journal
	plain                  // touches nothing, and is not repeated
	idempotent             // touches nothing, and is
	kinds
)

// A sim is one run: workers that are killed and frozen, a log whose answers get
// lost, deliveries that come again for no reason, cancels, ends of approvals,
// and records that do not hold. Its time is synctest's.
type sim struct {
	t       *testing.T
	log     *memoryLog
	workers map[events.WorkerID]*simWorker
	wg      sync.WaitGroup
	storm   chan struct{} // closed: the weather is good

	mu    sync.Mutex
	rnd   *rand.Rand
	calls []*simCall
}

type simCall struct {
	a     events.Aggregate
	kind  kind
	seq   uint64 // of the approval
	until time.Time
	mu    sync.Mutex
	ran   []uint64 // F of each run
	noise int
	acked bool
}

// TestSimulation runs the protocol through many storms. CORREX_SOAK=1 makes it
// thousands.
func TestSimulation(t *testing.T) {
	seeds := 150
	if os.Getenv("CORREX_SOAK") != "" {
		seeds = 20_000
	}
	base := testenv.Seed(t)
	sum := map[string]int{}
	for n := range seeds {
		seed := base + uint64(n)
		synctest.Test(t, func(t *testing.T) { newSim(t, seed).run(sum) })
		if t.Failed() {
			t.Fatalf("storm %d of CORREX_SEED=%d; CORREX_SEED=%d begins with it", n, base, seed)
		}
	}
	t.Log(sum)
	for _, want := range []string{"COMPLETED", "worker_lost", "rolled back", "recovered", "cancelled", "approval ended", "attempt 2"} {
		if sum[want] == 0 {
			t.Errorf("in %d storms nothing ever was %q: they prove nothing about it", seeds, want)
		}
	}
}

func newSim(t *testing.T, seed uint64) *sim {
	s := &sim{
		t: t, log: &memoryLog{recs: map[events.Aggregate][]events.Record{}}, workers: map[events.WorkerID]*simWorker{},
		storm: make(chan struct{}), rnd: rand.New(rand.NewPCG(seed, 7)),
	}
	for _, id := range []events.WorkerID{"w1", "w2", "w3"} {
		s.workers[id] = &simWorker{id: id, disk: &simDisk{
			entries: map[events.Aggregate]claim.Entry{}, inPlace: map[events.Aggregate]map[uint64]bool{},
		}}
	}
	return s
}

func (s *sim) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rnd.IntN(n)
}

// bad reports true for so many of a hundred, while the storm lasts.
func (s *sim) bad(percent int) bool {
	select {
	case <-s.storm:
		return false
	default:
		return s.n(100) < percent
	}
}

func (s *sim) pause(most time.Duration) time.Duration {
	return time.Duration(s.n(int(most/time.Microsecond))) * time.Microsecond
}

func (s *sim) delay(ctx context.Context, most time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.pause(most)):
		return nil
	}
}

func (s *sim) run(sum map[string]int) {
	for _, w := range s.workers {
		s.boot(w)
	}
	for n := range 6 {
		s.calls = append(s.calls, s.approve(n))
	}
	for _, c := range s.calls {
		s.wg.Go(func() { s.deliver(c) })
		s.wg.Go(func() { s.meddle(c) })
	}
	s.rage()
	close(s.storm)
	s.wg.Wait()
	for _, c := range s.calls {
		s.judge(c, sum)
	}
	for _, w := range s.workers {
		if n := len(w.disk.all()); n != 0 {
			s.t.Errorf("journal of %s still has %d entries", w.id, n)
		}
	}
}

func (s *sim) approve(n int) *simCall {
	c := &simCall{kind: kind(n % int(kinds)), a: events.Aggregate{Session: "s", Kind: events.KindTool, ID: fmt.Sprintf("t%d-0", n)}}
	c.until = time.Now().Add([]time.Duration{time.Hour, time.Hour, time.Second, 100 * time.Millisecond}[s.n(4)])
	params := events.Raw(`{}`)
	last, err := s.log.append(events.ToolInvocationRequested{Ref: c.a.Ref(), Token: "x", Request: events.ToolRequest{Tool: "x", Parameters: params}}, 0)
	if err == nil {
		c.seq, err = s.log.append(events.ApprovalGranted{
			Ref: c.a.Ref(), Token: "x", Tool: "x", Policy: "p", Digest: approval.Digest("x", params, nil, "p"), Until: c.until,
		}, last)
	}
	if err != nil {
		s.t.Error(err)
	}
	return c
}

// job is how a life works on calls of a kind.
func (s *sim) job(l *life, k kind) claim.Job {
	j := claim.Job{Rules: claim.ToolRules{Worker: l.worker.id}, Idempotent: k == idempotent}
	if k == touches {
		j.Journal = simJournal{l}
	}
	j.Work = workFunc(func(ctx context.Context, t claim.Task) events.Fact { return s.work(ctx, l, k, t) })
	return j
}

func (s *sim) work(ctx context.Context, l *life, k kind, t claim.Task) events.Fact {
	a, disk := t.State.Aggregate, l.worker.disk
	s.call(a).runs(t.Started)
	e, journal := claim.Entry{Aggregate: a, Fence: t.Fence()}, simJournal{l}
	if k == touches {
		journal.begin(e)
		disk.apply(a, t.Started) // a frozen worker's tool may still do this
	}
	err := s.delay(ctx, 2*simAckWait)
	l.gate()
	end := completed(t)
	if err != nil || s.n(10) == 0 {
		f := events.ToolExecutionFailed{Ref: a.Ref(), Fence: t.Fence(), Reason: "tool failed", Effects: events.EffectsNone}
		if err != nil {
			f.Reason = context.Cause(ctx).Error()
		}
		if k == touches {
			undone, _ := journal.Undo(ctx, e)
			f.Effects = undone.Effects
		}
		end = f
	}
	if k == touches {
		_ = journal.Result(e, end)
	}
	return end
}

func (s *sim) call(a events.Aggregate) *simCall {
	for _, c := range s.calls {
		if c.a == a {
			return c
		}
	}
	return nil
}

func (c *simCall) runs(f uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran = append(c.ran, f)
}

func (c *simCall) settled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked
}

// deliver is the consumer: it hands the approval to some worker, waits as long as
// that one gives signs of life, and does so again until it is acked.
func (s *sim) deliver(c *simCall) {
	for n := 0; !c.settled(); n++ {
		if n > 400 {
			s.t.Errorf("%s is delivered again and again; log: %v", c.a, s.story(c))
			return
		}
		l := s.somebody()
		if l == nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		done := make(chan struct{})
		s.wg.Go(func() {
			defer close(done)
			d := claim.Delivery{Aggregate: c.a, Seq: c.seq, Again: n > 0 && s.n(2) == 0}
			if s.n(2) == 0 {
				d.Record = s.log.at(c.a, c.seq)
			}
			o, err := l.claims.Handle(l.ctx, s.job(l, c.kind), d)
			l.gate()
			s.settle(c, o, err)
		})
		s.patience(c, l, done)
	}
}

// patience waits for a handler: for its end, or for an ack wait without a sign.
func (s *sim) patience(c *simCall, l *life, done <-chan struct{}) {
	for missed := 0; missed < 3; {
		select {
		case <-done:
			if !c.settled() {
				time.Sleep(simAckWait)
			}
			return
		case <-time.After(simAckWait / 3):
			if alive, frozen, _ := l.state(); !alive || frozen {
				missed++
			} else {
				missed = 0
			}
			if s.bad(2) {
				return // delivered again for no reason at all
			}
		}
	}
}

func (s *sim) settle(c *simCall, o claim.Outcome, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o {
	case claim.Ack:
		c.acked = c.acked || !s.bad(10) // an ack can get lost
	case claim.Term:
		s.t.Errorf("%s was terminated: %v", c.a, err)
		c.acked = true
	}
}

// somebody is a worker that takes deliveries now, or nil.
func (s *sim) somebody() *life {
	for range 10 {
		l := s.workers[events.WorkerID(fmt.Sprintf("w%d", 1+s.n(3)))].life()
		if alive, frozen, ready := l.state(); alive && !frozen && ready {
			return l
		}
	}
	return nil
}

// meddle is everybody else: a person who cancels, and a stranger.
func (s *sim) meddle(c *simCall) {
	time.Sleep(s.pause(1500 * time.Millisecond))
	i := session.FoldInvocation(s.log.read(c.a))
	switch {
	case s.n(4) == 0 && i.Status() == session.Started:
		if _, err := s.log.append(events.CancelRequested{Ref: c.a.Ref(), Reason: "sim"}, i.LastSeq); err == nil && s.n(2) == 0 {
			for _, w := range s.workers {
				if _, frozen, _ := w.life().state(); !frozen {
					w.life().claims.Poke(c.a)
				}
			}
		}
	case s.n(4) == 0:
		if _, err := s.log.append(events.ApprovalDenied{Ref: c.a.Ref()}, i.LastSeq); err == nil {
			c.noise++
		}
	}
}

// rage kills and freezes workers for a while, and leaves all of them alive.
func (s *sim) rage() {
	for range 12 {
		time.Sleep(s.pause(250 * time.Millisecond))
		w := s.workers[events.WorkerID(fmt.Sprintf("w%d", 1+s.n(3)))]
		l := w.life()
		alive, frozen, _ := l.state()
		switch {
		case frozen:
			l.melt()
		case alive && s.n(2) == 0:
			l.freeze()
		case alive:
			l.kill()
			time.Sleep(s.pause(2 * simAckWait))
			s.boot(w)
		}
	}
	for _, w := range s.workers {
		w.life().melt()
	}
}

func (s *sim) story(c *simCall) []string {
	var out []string
	for _, r := range s.log.read(c.a) {
		out = append(out, string(r.Subject))
	}
	return out
}
