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

func TestClause4_TheOwnerAnswers_Drop(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	owner, _ := b.worker("w2")
	running, goOn := make(chan struct{}), make(chan struct{})
	h := handle(b.ctx, owner, tool(&counter{}, func(_ context.Context, t claim.Task) events.Fact {
		close(running)
		<-goOn
		return completed(t)
	}), b.delivery())
	<-running
	c, _ := b.worker("w1")
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Drop)
	b.wantStory("requested", "approved", "started")
	close(goOn)
	h.wait(b, claim.Ack)
}

func TestClause4_NobodyAnswersForAWholeAckWait_FailedWorkerLost(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		name := map[bool]string{false: "silence", true: "denial by the owner's next life"}[restarted]
		t.Run(name, func(t *testing.T) {
			b := newBench(t).approved(time.Hour)
			f := b.startedBy("w2", 1)
			if restarted {
				b.worker("w2")
			}
			c, _ := b.worker("w1")
			var runs counter
			began := time.Now()
			o, err := c.Handle(b.ctx, tool(&runs, nil), b.delivery())
			b.want(o, err, claim.Ack)
			if d := time.Since(began); d < ackWait || b.ask.questions() < 3 {
				t.Errorf("gave up after %s and %d questions; the ack wait is %s", d, b.ask.questions(), ackWait)
			}
			e := b.failed()
			if e.Effects != events.EffectsUnknown || !e.Recoverable || e.Started != f.Started || e.Nonce != "" || runs.get() != 0 {
				t.Errorf("end is %+v, ran %d times", e, runs.get())
			}
		})
	}
}

func TestClause4_AfterACancelTheLostOwnersWorkIsEndedToo(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	b.startedBy("w2", 1)
	b.append(events.CancelRequested{Ref: b.a.Ref()})
	c, _ := b.worker("w1")
	j := tool(&counter{}, nil)
	j.Idempotent = true
	o, err := c.Handle(b.ctx, j, b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "cancel_requested", "failed") // never repeated once a cancel was asked for
}

func TestClause4_TheOwnerEndsWhileItIsAsked_Ack(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	f := b.startedBy("w2", 1)
	c, faults := b.worker("w1")
	faults.before = map[string]func(){"failed": func() {
		b.append(events.ToolExecutionCompleted{Ref: b.a.Ref(), Fence: f})
	}}
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "completed")
}

func TestClause4_SomethingHappensWhileItIsAsked_Drop(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	b.startedBy("w2", 1)
	c, faults := b.worker("w1")
	faults.before = map[string]func(){"failed": func() { b.append(events.CancelRequested{Ref: b.a.Ref()}) }}
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Drop)
	b.wantStory("requested", "approved", "started", "cancel_requested")
}

func TestClause4_IdempotentIsRepeated_AtMostThreeTimes(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	var runs counter
	idempotent := func(work workFunc) claim.Job {
		j := tool(&runs, work)
		j.Idempotent = true
		return j
	}
	b.startedBy("w9", 1)
	b.startedBy("w8", 2)
	c, _ := b.worker("w1")
	o, err := c.Handle(b.ctx, idempotent(nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "started", "started", "completed")
	if i := session.FoldInvocation(b.records()); i.Alarms != 0 || i.Started.Attempt != 3 {
		t.Errorf("%d alarms, attempt %d", i.Alarms, i.Started.Attempt)
	}

	b2 := newBenchAgain(b, "t2-0")
	for n, w := range []events.WorkerID{"w9", "w8", "w7"} {
		b2.startedBy(w, n+1)
	}
	runs = counter{}
	o, err = c.Handle(b2.ctx, idempotent(nil), b2.delivery())
	b2.want(o, err, claim.Ack)
	if b2.failed(); runs.get() != 0 {
		t.Error("ran a fourth time")
	}
}

func TestClause4_WhatKeepsAJournalIsNeverRepeated(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	b.startedBy("w2", 1)
	c, _ := b.worker("w1")
	var runs counter
	j := touching(newMemory(), &runs, func(_ context.Context, t claim.Task) events.Fact { return completed(t) })
	j.Idempotent = true
	o, err := c.Handle(b.ctx, j, b.delivery())
	b.want(o, err, claim.Ack)
	if e := b.failed(); e.Effects != events.EffectsUnknown || runs.get() != 0 {
		t.Errorf("end is %+v, ran %d times", e, runs.get())
	}
}

func TestClause4_MyOwnEarlierLife_NotInTheJournal_NoEffects(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	f := b.startedBy("w1", 1)
	c, _ := b.worker("w1")
	var runs counter
	j := touching(newMemory(), &runs, func(_ context.Context, t claim.Task) events.Fact { return completed(t) })
	o, err := c.Handle(b.ctx, j, b.delivery())
	b.want(o, err, claim.Ack)
	if e := b.failed(); e.Effects != events.EffectsNone || e.Fence != f || b.ask.questions() != 0 || runs.get() != 0 {
		t.Errorf("end is %+v after %d questions, ran %d times", e, b.ask.questions(), runs.get())
	}
}

func TestClause4_AnInferenceIsTakenOverByTheNextAttempt(t *testing.T) {
	for _, owner := range []events.WorkerID{"w1", "w2"} { // my own earlier life, and somebody else's
		t.Run(string(owner), func(t *testing.T) {
			b := newBench(t).inference()
			b.startedBy(owner, 1)
			c, _ := b.worker("w1")
			j := claim.Job{Rules: claim.InferenceRules{}, Idempotent: true, Work: workFunc(func(_ context.Context, t claim.Task) events.Fact {
				return events.InferenceCompleted{Ref: t.State.Aggregate.Ref(), Fence: t.Fence()}
			})}
			o, err := c.Handle(b.ctx, j, b.delivery())
			b.want(o, err, claim.Ack)
			b.wantStory("requested", "started", "started", "completed")
			if i := session.FoldInference(b.records()); i.Done == nil || i.Alarms != 0 {
				t.Errorf("inference is %+v", i)
			}
		})
	}
}

func TestClause4_AnInferenceIsGivenUpAfterThreeAttempts(t *testing.T) {
	b := newBench(t).inference()
	for n := range 3 {
		b.startedBy("w2", n+1)
	}
	c, _ := b.worker("w1")
	o, err := c.Handle(b.ctx, claim.Job{Rules: claim.InferenceRules{}, Idempotent: true}, b.delivery())
	b.want(o, err, claim.Ack)
	if i := session.FoldInference(b.records()); i.Failure == nil || i.Failure.Code != events.FailWorkerLost {
		t.Errorf("inference is %+v", i)
	}
}

// foreign ends the invocation as somebody who fences does.
func (b *bench) foreign() {
	i := session.FoldInvocation(b.records())
	b.append(events.ToolExecutionFailed{
		Ref: b.a.Ref(), Fence: events.Fence{Started: i.StartedSeq}, Reason: "worker lost",
		Effects: events.EffectsUnknown, Recoverable: true,
	})
}

func TestClause5_AForeignEnd_RollBackRecoveredAck(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	m := newMemory()
	f.before = map[string]func(){"completed": b.foreign}
	f.lose = map[string]int{"recovered": 1}
	held := true
	f.seen = func(name string, _ uint64) {
		if name == "recovered" {
			held = c.Running(claim.Question{Session: b.a.Session, Kind: b.a.Kind, ID: b.a.ID, Started: b.seq + 1}).Running
		}
	}
	o, err := c.Handle(b.ctx, touching(m, &counter{}, func(_ context.Context, t claim.Task) events.Fact { return completed(t) }), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "failed", "recovered")
	if n, inPlace, _ := m.state(); n != 0 || inPlace {
		t.Errorf("journal has %d entries, effect in place %v", n, inPlace)
	}
	if held {
		t.Error("says that it runs what it was fenced off from")
	}
	i := session.FoldInvocation(b.records())
	if i.Recovered == nil || len(i.Recovered.Files) != 1 || i.Recovered.Worker != "w1" || i.Alarms != 0 {
		t.Errorf("recovered is %+v, %d alarms", i.Recovered, i.Alarms)
	}
}

func TestClause5_AForeignEnd_NothingTouched_Ack(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	f.before = map[string]func(){"completed": b.foreign}
	o, err := c.Handle(b.ctx, tool(&counter{}, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "failed")
}

func TestClause5_ALaterStarted_NeitherRecoveredNorAck(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, f := b.worker("w1")
	f.before = map[string]func(){"completed": func() { b.startedBy("w2", 2) }}
	m := newMemory()
	o, err := c.Handle(b.ctx, touching(m, &counter{}, func(_ context.Context, t claim.Task) events.Fact { return completed(t) }), b.delivery())
	b.want(o, err, claim.Drop)
	b.wantStory("requested", "approved", "started", "started")
	if n, inPlace, _ := m.state(); n != 1 || inPlace {
		t.Errorf("journal has %d entries, effect in place %v; it must remember what it still has to tell", n, inPlace)
	}
	b.foreign()
	o, err = c.Handle(b.ctx, touching(m, &counter{}, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.wantStory("requested", "approved", "started", "started", "failed", "recovered")
	if n, _, _ := m.state(); n != 0 {
		t.Errorf("journal has %d entries", n)
	}
}

func TestClause5_FencedWhileItRuns_Stopped(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	c, _ := b.worker("w1")
	running, why := make(chan struct{}), error(nil)
	h := handle(b.ctx, c, tool(&counter{}, untilCancelled(running, &why)), b.delivery())
	<-running
	b.foreign()
	h.wait(b, claim.Ack)
	if !errors.Is(why, claim.ErrFenced) {
		t.Errorf("cause is %v", why)
	}
	b.wantStory("requested", "approved", "started", "failed")
}

func TestClause6_AnEndIsLast_Ack(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	f := b.startedBy("w2", 1)
	b.append(events.ToolExecutionFailed{Ref: b.a.Ref(), Fence: f, Effects: events.EffectsNone})
	c, _ := b.worker("w1")
	var runs counter
	o, err := c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Ack)
	b.append(events.Recovered{Ref: b.a.Ref(), Fence: f, Worker: "w2"})
	o, err = c.Handle(b.ctx, tool(&runs, nil), b.delivery())
	b.want(o, err, claim.Ack)
	if runs.get() != 0 {
		t.Errorf("ran %d times", runs.get())
	}
}

// newBenchAgain approves another invocation on the same log.
func newBenchAgain(b *bench, id string) *bench {
	n := &bench{T: b.T, ctx: b.ctx, log: b.log, ask: b.ask}
	i := session.FoldInvocation(b.records())
	n.a = events.Aggregate{Session: b.a.Session, Kind: b.a.Kind, ID: id}
	r, g := *i.Requested, *i.Granted
	r.ID, g.ID = id, id
	n.append(r)
	n.seq = n.append(g)
	return n
}
