package claim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"correx/internal/claim"
	"correx/internal/session"
	"correx/pkg/events"
)

// handling runs Handle aside, so that the test can act meanwhile.
type handling struct {
	outcome claim.Outcome
	err     error
	done    chan struct{}
}

func handle(ctx context.Context, c *claim.Claims, j claim.Job, d claim.Delivery) *handling {
	h := &handling{done: make(chan struct{})}
	go func() {
		defer close(h.done)
		h.outcome, h.err = c.Handle(ctx, j, d)
	}()
	return h
}

func (h *handling) wait(b *bench, want claim.Outcome) {
	b.Helper()
	select {
	case <-h.done:
	case <-b.ctx.Done():
		b.Fatal("Handle does not return")
	}
	b.want(h.outcome, h.err, want)
}

func TestClause1_HeldAlready_KeepAndNothingElse(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	running, goOn := make(chan struct{}), make(chan struct{})
	var runs counter
	j := tool(&runs, func(_ context.Context, t claim.Task) events.Fact {
		close(running)
		<-goOn
		return completed(t)
	})
	first := handle(b.ctx, c, j, b.delivery())
	<-running
	o, err := c.Handle(b.ctx, j, b.delivery())
	b.want(o, err, claim.Keep)
	b.wantStory("requested", "approved", "started")
	close(goOn)
	first.wait(b, claim.Ack)
	b.wantStory("requested", "approved", "started", "completed")
	if n := runs.get(); n != 1 {
		t.Errorf("ran %d times", n)
	}
}

func TestClause2_Approved_ClaimRunAck(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	var runs counter
	o, err := c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "completed")
	i := session.FoldInvocation(b.records())
	if i.Started.Worker != "w1" || i.Started.Boot != "boot-w1" || i.Started.Attempt != 1 || i.Started.Nonce == "" {
		t.Errorf("claim is %+v", i.Started.Claim)
	}
	end := i.End.(events.ToolExecutionCompleted)
	if end.Started != i.StartedSeq || end.Nonce != i.Started.Nonce {
		t.Errorf("end carries %+v, the claim is at %d with %s", end.Fence, i.StartedSeq, i.Started.Nonce)
	}
	recs := b.records()
	for n, r := range recs[2:] {
		if got, want := r.Header.Get(events.HeaderCausation), recs[n+1].Header.Get(events.HeaderID); got != want {
			t.Errorf("%s is caused by %q, want %q", r.Subject, got, want)
		}
	}
	if c.Held() != 0 {
		t.Error("still held after its end")
	}
}

func TestClause2_HeldBeforeStartedIsAppended(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	var during claim.Answer
	q := claim.Question{Session: b.a.Session, Kind: b.a.Kind, ID: b.a.ID, Started: b.seq + 1}
	f.before = map[string]func(){"started": func() { during = c.Running(q) }}
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Ack)
	if !during.Running {
		t.Error("denied while its started was on its way")
	}
	if c.Running(q).Running {
		t.Error("claims to run what has ended")
	}
}

func TestClause2_ARecordThatDoesNotHoldIsNoObstacle(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	b.append(events.ApprovalDenied{Ref: b.a.Ref()}) // not allowed after approved
	f.before = map[string]func(){"completed": func() { b.append(events.ApprovalDenied{Ref: b.a.Ref()}) }}
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "denied", "started", "denied", "completed")
}

func TestClause2_SomebodyFaster_Drop(t *testing.T) {
	for _, again := range []bool{false, true} {
		b := newBenchSerial(t).approved(time.Hour)
		c, f := b.worker("w1")
		faster, _ := b.worker("w2")
		running, goOn := make(chan struct{}), make(chan struct{})
		var h *handling
		f.before = map[string]func(){"started": func() {
			h = handle(b.ctx, faster, tool(&counter{}, func(_ context.Context, t claim.Task) events.Fact {
				close(running)
				<-goOn
				return completed(t)
			}), b.delivery())
			<-running
		}}
		var runs counter
		d := b.delivery()
		d.Again = again
		o, err := c.Handle(b.ctx, tool(&runs, nil), d)
		b.want(o, err, claim.Drop)
		b.wantStory("requested", "approved", "started")
		if runs.get() != 0 || c.Held() != 0 {
			t.Errorf("ran %d times, holds %d", runs.get(), c.Held())
		}
		close(goOn)
		h.wait(b, claim.Ack)
	}
}

func TestClause2_ACountOfOneProvesNothing(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	b.startedBy("w2", 1)
	c, _ := b.worker("w1")
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery()) // Again is not set
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "failed")
}

func TestClause2_SomebodyFasterAndDone_Ack(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	f.before = map[string]func(){"started": func() { b.append(events.ToolExecutionRejected{Ref: b.a.Ref(), Reason: "cancelled"}) }}
	var runs counter
	o, err := c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "rejected")
}

func TestClause2_LostAnswerOfStarted_MyNonceIsMine(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	f.lose = map[string]int{"started": 1}
	var runs counter
	o, err := c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "completed")
	if runs.get() != 1 {
		t.Errorf("ran %d times", runs.get())
	}
}

func TestClause2_StartedThatNeverArrived_TriedAgain(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	f.fail = map[string]int{"started": 2}
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "completed")
}

func TestClause2_StartedGivenUpArrivesLater_FailedNoEffects(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	var arrive func()
	f.late = map[string]func(func()){"started": func(a func()) { arrive = a }}
	var runs counter
	o, err := c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Drop)
	if err == nil {
		t.Error("a drop for want of an answer says nothing")
	}
	arrive()
	b.wantStory("requested", "approved", "started")
	o, err = c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Ack)
	if e := b.failed(); e.Effects != events.EffectsNone || !e.Recoverable {
		t.Errorf("end is %+v", e)
	}
	if runs.get() != 0 {
		t.Error("ran though nobody knew that it was claimed")
	}
}

func TestClause2_ApprovalThatDoesNotHold_Term(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	b.a.ID = "t1-1" // another invocation, approved with a digest of nothing
	b.append(events.ToolInvocationRequested{Ref: b.a.Ref(), Token: "echo", Request: events.ToolRequest{Tool: "echo", Parameters: events.Raw(`{}`)}})
	b.seq = b.append(events.ApprovalGranted{Ref: b.a.Ref(), Token: "echo", Tool: "echo", Digest: "of something else", Until: time.Now().Add(time.Hour)})
	var runs counter
	o, err := c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Term)
	if err == nil || runs.get() != 0 {
		t.Errorf("error %v, ran %d times", err, runs.get())
	}
	b.wantStory("requested", "approved")
}

func TestClause2_SecondApproval_TermsThatMessageOnly(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	i := session.FoldInvocation(b.records())
	second := b.append(*i.Granted)
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), claim.Delivery{Aggregate: b.a, Seq: second})
	b.want(o, err, claim.Term)
	o, err = c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Ack)
}

func TestClause2_ApprovalThatEnded_RejectedByTheWorker(t *testing.T) {
	b := newBench(t).approved(-time.Second)
	c, _ := b.worker("w1")
	var runs counter
	o, err := c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Ack)
	end, ok := session.FoldInvocation(b.records()).End.(events.ToolExecutionRejected)
	if !ok || end.Worker != "w1" || end.Reason == "" || runs.get() != 0 {
		t.Errorf("end is %+v, ran %d times", end, runs.get())
	}
}

func TestClause2_NotAdmitted_RejectedWithTheReason(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	var runs counter
	j := tool(&runs, nil)
	j.Rules = claim.ToolRules{Worker: "w1", Admit: func(session.Invocation) string { return "isolation is too low" }}
	o, err := c.Handle(b.ctx, j, b.delivery())
	b.want(o, err, claim.Ack)
	end := session.FoldInvocation(b.records()).End.(events.ToolExecutionRejected)
	if end.Reason != "isolation is too low" || runs.get() != 0 {
		t.Errorf("end is %+v, ran %d times", end, runs.get())
	}
}

func TestClause3_StartedStoredPastTheApprovalsEnd(t *testing.T) {
	b := newBench(t).approved(300 * time.Millisecond)
	c, f := b.worker("w1")
	until := session.FoldInvocation(b.records()).Granted.Until
	f.before = map[string]func(){"started": func() { <-time.After(time.Until(until) + time.Millisecond) }}
	var runs counter
	o, err := c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Ack)
	if e := b.failed(); e.Effects != events.EffectsNone || runs.get() != 0 {
		t.Errorf("end is %+v, ran %d times", e, runs.get())
	}
}

func TestClause3_PastTheApprovalsEnd_AtEveryAttempt(t *testing.T) {
	b := newBench(t).approved(50 * time.Millisecond)
	b.startedBy("w2", 1)
	c, _ := b.worker("w1") // the ack wait that w2 is asked for outlasts the approval
	var runs counter
	j := tool(&runs, nil)
	j.Idempotent = true
	o, err := c.Handle(b.ctx, j, b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "started", "failed")
	if e := b.failed(); e.Effects != events.EffectsNone || runs.get() != 0 {
		t.Errorf("end is %+v, ran %d times", e, runs.get())
	}
}

// untilCancelled runs until it is told to stop, and says why.
func untilCancelled(running chan<- struct{}, why *error) workFunc {
	return func(ctx context.Context, t claim.Task) events.Fact {
		close(running)
		<-ctx.Done()
		*why = context.Cause(ctx)
		return failedFor(t, (*why).Error())
	}
}

func TestClause3_CancelIsObeyed(t *testing.T) {
	for _, doorbell := range []bool{true, false} {
		name := map[bool]string{true: "by the doorbell", false: "by looking when the bell was not heard"}[doorbell]
		t.Run(name, func(t *testing.T) {
			b := newBench(t).approved(time.Hour)
			c, _ := b.worker("w1")
			running, why := make(chan struct{}), error(nil)
			h := handle(b.ctx, c, tool(&counter{}, untilCancelled(running, &why)), b.delivery())
			<-running
			b.append(events.CancelRequested{Ref: b.a.Ref(), Reason: "enough"})
			if doorbell {
				c.Poke(b.a)
			}
			h.wait(b, claim.Ack)
			if want := (claim.Cancelled{Reason: "enough"}); why != want {
				t.Errorf("cause is %v, want %v", why, want)
			}
			b.wantStory("requested", "approved", "started", "cancel_requested", "failed")
			if b.failed().Reason != "cancelled: enough" {
				t.Errorf("reason is %q", b.failed().Reason)
			}
		})
	}
}

func TestClause3_ARingProvesNothing(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	running, goOn := make(chan struct{}), make(chan struct{})
	h := handle(b.ctx, c, tool(&counter{}, func(ctx context.Context, t claim.Task) events.Fact {
		close(running)
		<-goOn
		if ctx.Err() != nil {
			return failedFor(t, "stopped for nothing")
		}
		return completed(t)
	}), b.delivery())
	<-running
	for range 5 {
		c.Poke(b.a)
	}
	<-time.After(ackWait) // also looks by itself meanwhile
	close(goOn)
	h.wait(b, claim.Ack)
	b.wantStory("requested", "approved", "started", "completed")
}

func TestClause3_AJournalledResultStandsAgainstALaterCancel(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	m := newMemory()
	f.before = map[string]func(){"completed": func() {
		b.append(events.CancelRequested{Ref: b.a.Ref()})
		c.Poke(b.a)
	}}
	o, err := c.Handle(b.ctx, touching(m, &counter{}, func(_ context.Context, t claim.Task) events.Fact { return completed(t) }), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "cancel_requested", "completed")
	if n, inPlace, _ := m.state(); n != 0 || !inPlace {
		t.Errorf("journal has %d entries, effect in place %v", n, inPlace)
	}
}

func TestClause3_LostAnswerOfTheEnd_OneEnd(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	f.lose = map[string]int{"completed": 1}
	m := newMemory()
	o, err := c.Handle(b.ctx, touching(m, &counter{}, func(_ context.Context, t claim.Task) events.Fact { return completed(t) }), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "completed")
	if n, inPlace, undone := m.state(); n != 0 || !inPlace || undone != 0 {
		t.Errorf("journal has %d entries, effect in place %v, undone %d times", n, inPlace, undone)
	}
}

func TestClause3_EndThatNeverArrived_TriedUntilItDoes(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	f.fail = map[string]int{"completed": 5}
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "completed")
}

func TestClause3_EndTooLargeForAMessage_TakenBackAndFailed(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	m := newMemory()
	o, err := c.Handle(b.ctx, touching(m, &counter{}, func(_ context.Context, t claim.Task) events.Fact {
		f := completed(t).(events.ToolExecutionCompleted)
		f.Receipt.Output = string(make([]byte, events.MaxFact))
		return f
	}), b.delivery())
	b.want(o, err, claim.Ack)
	if e := b.failed(); e.Effects != events.EffectsRolledBack {
		t.Errorf("end is %+v", e)
	}
	if n, inPlace, _ := m.state(); n != 0 || inPlace {
		t.Errorf("journal has %d entries, effect in place %v", n, inPlace)
	}
}

func TestClause3_NoResultAtAll_Failed(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	o, err := c.Handle(b.ctx, tool(&counter{}, func(context.Context, claim.Task) events.Fact { return nil }), b.delivery())
	b.want(o, err, claim.Ack)
	b.failed()
}

func TestClause3_Stopping_TheEndIsStillPublished(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	ctx, stop := context.WithCancel(b.ctx)
	running, why := make(chan struct{}), error(nil)
	h := handle(ctx, c, tool(&counter{}, untilCancelled(running, &why)), b.delivery())
	<-running
	stop()
	h.wait(b, claim.Ack)
	if !errors.Is(why, claim.ErrStopping) {
		t.Errorf("cause is %v", why)
	}
	b.wantStory("requested", "approved", "started", "failed")
}

func TestClause3_WorkThatPanicsIsNotHeldForEver(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = c.Handle(b.ctx, tool(&counter{}, func(context.Context, claim.Task) events.Fact { panic("tool broke") }), b.delivery())
	}()
	if c.Held() != 0 {
		t.Fatal("still held")
	}
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Ack)
	if e := b.failed(); e.Effects != events.EffectsNone {
		t.Errorf("end is %+v", e)
	}
}
