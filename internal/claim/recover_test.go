package claim_test

import (
	"context"
	"testing"
	"time"

	"correx/internal/claim"
	"correx/internal/session"
	"correx/pkg/events"
)

// left puts what a former life of w1 left behind: a claim, and an entry.
func left(b *bench, result func(events.Fence) events.Fact) (*memory, claim.Entry) {
	f := b.startedBy("w1", 1)
	m := newMemory()
	e := m.begin(b.a, f)
	if result != nil {
		_ = m.Result(e, result(f))
		e, _ = m.Entry(b.a)
	}
	return m, e
}

func done(b *bench) func(events.Fence) events.Fact {
	return func(f events.Fence) events.Fact { return events.ToolExecutionCompleted{Ref: b.a.Ref(), Fence: f} }
}

func recoverJob(m *memory) claim.Job {
	return touching(m, &counter{}, func(context.Context, claim.Task) events.Fact { panic("recovery runs nothing") })
}

func TestRecover_WhatWasRunningIsRolledBackAndReported(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	m, e := left(b, nil)
	c, _ := b.worker("w1")
	if err := c.Recover(b.ctx, recoverJob(m), e); err != nil {
		t.Fatal(err)
	}
	if f := b.failed(); f.Effects != events.EffectsRolledBack || f.Fence != e.Fence || !f.Recoverable {
		t.Errorf("end is %+v", f)
	}
	if n, inPlace, _ := m.state(); n != 0 || inPlace {
		t.Errorf("journal has %d entries, effect in place %v", n, inPlace)
	}
	o, err := c.Handle(b.ctx, recoverJob(m), b.delivery())
	b.want(o, err, claim.Ack)
}

func TestRecover_AResultIsPublishedNotRunAgain(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	m, e := left(b, done(b))
	c, _ := b.worker("w1")
	if err := c.Recover(b.ctx, recoverJob(m), e); err != nil {
		t.Fatal(err)
	}
	b.wantStory("requested", "approved", "started", "completed")
	if n, inPlace, _ := m.state(); n != 0 || !inPlace {
		t.Errorf("journal has %d entries, effect in place %v", n, inPlace)
	}
}

func TestRecover_AResultThatWasPublishedIsCleared(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	m, e := left(b, done(b))
	b.append(e.Result)
	c, _ := b.worker("w1")
	if err := c.Recover(b.ctx, recoverJob(m), e); err != nil {
		t.Fatal(err)
	}
	b.wantStory("requested", "approved", "started", "completed")
	if n, inPlace, _ := m.state(); n != 0 || !inPlace {
		t.Errorf("journal has %d entries, effect in place %v", n, inPlace)
	}
}

func TestRecover_AForeignEndFencesAResult(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	m, e := left(b, done(b))
	b.foreign()
	c, _ := b.worker("w1")
	if err := c.Recover(b.ctx, recoverJob(m), e); err != nil {
		t.Fatal(err)
	}
	b.wantStory("requested", "approved", "started", "failed", "recovered")
	if n, inPlace, _ := m.state(); n != 0 || inPlace {
		t.Errorf("journal has %d entries, effect in place %v", n, inPlace)
	}
	if i := session.FoldInvocation(b.records()); i.Alarms != 0 {
		t.Errorf("%d alarms", i.Alarms)
	}
}

func TestRecover_AnswersThatItHoldsWhatItRecovers(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	m, e := left(b, done(b))
	c, f := b.worker("w1")
	q := claim.Question{Session: b.a.Session, Kind: b.a.Kind, ID: b.a.ID, Started: e.Fence.Started}
	if c.Running(q).Running {
		t.Error("says yes before anything")
	}
	during := false
	f.before = map[string]func(){"completed": func() { during = c.Running(q).Running }}
	if err := c.Recover(b.ctx, recoverJob(m), e); err != nil {
		t.Fatal(err)
	}
	if !during {
		t.Error("denied what it was just publishing")
	}
}

func TestRecover_ADeliveryFindsWhatTheJournalStillHolds(t *testing.T) {
	b := newBench(t).approved(time.Hour)
	m, _ := left(b, nil)
	c, _ := b.worker("w1")
	o, err := c.Handle(b.ctx, recoverJob(m), b.delivery())
	b.want(o, err, claim.Ack)
	if f := b.failed(); f.Effects != events.EffectsRolledBack {
		t.Errorf("end is %+v", f)
	}
}
