package session_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"correx/internal/session"
	"correx/pkg/events"
)

// log is a memLog that facts are appended to behind whatever is last.
func (l *memLog) add(t *testing.T, facts ...events.Fact) []events.Record {
	t.Helper()
	var recs []events.Record
	for _, f := range facts {
		r, err := l.append(epoch.Add(time.Duration(len(l.recs))*time.Second), f, l.last[events.AggregateOf(f)])
		if err != nil {
			t.Fatal(err)
		}
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		recs = append(recs, r)
	}
	return recs
}

func reduce(recs []events.Record) session.ToolState {
	var s session.ToolState
	for _, r := range recs {
		s = session.ReduceTools(s, r)
	}
	return s
}

func toolFacts(id string, tier events.Tier) (ref events.Ref, requested events.ToolInvocationRequested, granted events.ApprovalGranted, claim events.ToolExecutionStarted) {
	ref = events.Ref{Session: "s1", ID: id}
	req := events.ToolRequest{Invocation: events.ToolInvocationID(id), Session: "s1", Stage: "turn-1", Tool: "echo", Parameters: events.Raw(`{"n":9007199254740993}`)}
	requested = events.ToolInvocationRequested{Ref: ref, Request: req, Tier: tier, Token: "echo"}
	i := session.Invocation{Requested: &requested}
	granted = events.ApprovalGranted{Ref: ref, Tool: "echo", Token: "echo", Tier: tier, Policy: "v1", Digest: i.Digest("v1"), By: "policy", Scope: events.ScopeOnce}
	claim = events.ToolExecutionStarted{Ref: ref, Claim: events.Claim{Worker: "w1", Boot: "b", Nonce: "n", Attempt: 1}, Isolation: events.IsolationFull}
	return ref, requested, granted, claim
}

// The five transitions of the lifecycle: requested, started, completed, failed,
// rejected; and whatever is not about tools passes through.
func TestReduceTools(t *testing.T) {
	only := func(t *testing.T, s session.ToolState) session.ToolInvocationRecord {
		t.Helper()
		if len(s.Invocations) != 1 {
			t.Fatalf("%d invocations", len(s.Invocations))
		}
		return s.Invocations[0]
	}
	ref, requested, granted, claim := toolFacts("t1-0", events.T2)

	t.Run("requested", func(t *testing.T) {
		l := newLog(t)
		got := only(t, reduce(l.add(t, requested)))
		want := session.ToolInvocationRecord{ID: "t1-0", Name: "echo", Tier: events.T2, Request: requested.Request, Status: session.Requested, RequestedAt: epoch}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("record = %+v, want %+v", got, want)
		}
	})
	t.Run("started", func(t *testing.T) {
		got := only(t, reduce(newLog(t).add(t, requested, granted, claim)))
		if got.Status != session.Started || got.CompletedAt != nil || got.Receipt != nil || !got.RequestedAt.Equal(epoch) {
			t.Errorf("record = %+v", got)
		}
	})
	t.Run("completed", func(t *testing.T) {
		l := newLog(t)
		recs := l.add(t, requested, granted, claim)
		recs = append(recs, l.add(t, events.ToolExecutionCompleted{Ref: ref, Fence: events.Fence{Started: 3, Nonce: "n"}, Receipt: events.ToolReceipt{Output: "hi", Tier: events.T2}})...)
		got := only(t, reduce(recs))
		if got.Status != session.Completed || got.Receipt == nil || got.Receipt.Output != "hi" || got.CompletedAt == nil || !got.CompletedAt.Equal(epoch.Add(3*time.Second)) {
			t.Errorf("record = %+v", got)
		}
	})
	t.Run("failed", func(t *testing.T) {
		l := newLog(t)
		recs := l.add(t, requested, granted, claim)
		recs = append(recs, l.add(t, events.ToolExecutionFailed{Ref: ref, Fence: events.Fence{Started: 3, Nonce: "n"}, Reason: "exit 3", Effects: events.EffectsNone, Receipt: &events.ToolReceipt{ExitCode: 3}})...)
		got := only(t, reduce(recs))
		if got.Status != session.Failed || got.Receipt == nil || got.Receipt.ExitCode != 3 || got.CompletedAt == nil {
			t.Errorf("record = %+v", got)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		got := only(t, reduce(newLog(t).add(t, requested, events.ToolExecutionRejected{Ref: ref, Tier: events.T2, Reason: "no"})))
		if got.Status != session.Rejected || got.Receipt != nil || got.CompletedAt == nil {
			t.Errorf("record = %+v", got)
		}
	})
	t.Run("unrelated facts pass through", func(t *testing.T) {
		l := newLog(t)
		s := reduce(l.add(t, requested))
		for _, typ := range events.FactTypes() {
			if typ.Name.Kind() == events.KindTool {
				continue
			}
			r := events.Record{Seq: 99, Aggregate: events.Aggregate{Session: "s1", Kind: typ.Name.Kind(), ID: "t1-0"}, Fact: typ.New()}
			if next := session.ReduceTools(s, r); !reflect.DeepEqual(next, s) {
				t.Errorf("%s changes the tools to %+v", typ.Name, next)
			}
		}
	})
	t.Run("what does not hold passes through", func(t *testing.T) {
		l := newLog(t)
		s := reduce(l.add(t, requested))
		recs := l.add(t, claim, events.ToolExecutionCompleted{Ref: ref}, events.Recovered{Ref: ref})
		recs = append(recs, l.put(epoch, "evt.s1.tool.t1-0.nonsense", nil, []byte("{}")), l.put(epoch, "evt.s1.tool.t9-9.started", nil, []byte("{")))
		for _, r := range recs {
			if s = session.ReduceTools(s, r); len(s.Invocations) != 1 || s.Invocations[0].Status != session.Requested {
				t.Errorf("%s changes the tools to %+v", r.Subject, s.Invocations)
			}
		}
	})
}

// A session's ToolState and the folds of its aggregates say the same, after every
// record of every golden log, and an older ToolState stays as it was.
func TestToolStateIsWhatTheAggregatesSay(t *testing.T) {
	goldens(t, func(t *testing.T, _ string, a *txtar.Archive) {
		l := play(t, a, false).log
		recs := map[events.Aggregate][]events.Record{}
		var s session.ToolState
		for _, r := range l.recs {
			if r.Aggregate.Session != "s1" {
				continue
			}
			older, copied := s, append([]session.ToolInvocationRecord(nil), s.Invocations...)
			s = session.ReduceTools(s, r)
			if !reflect.DeepEqual(older.Invocations, copied) {
				t.Fatalf("#%d changed an older state", r.Seq)
			}
			recs[r.Aggregate] = append(recs[r.Aggregate], r)
			asked := 0
			for agg, of := range recs {
				fold := session.FoldInvocation(of)
				if agg.Kind != events.KindTool || fold.Requested == nil {
					continue
				}
				asked++
				found := false
				for _, got := range s.Invocations {
					found = found || string(got.ID) == agg.ID && reflect.DeepEqual(got, fold.Record())
				}
				if !found {
					t.Errorf("after #%d no record is that of %s: %+v", r.Seq, agg, fold.Record())
				}
			}
			if len(s.Invocations) != asked {
				t.Errorf("after #%d there are %d records of %d invocations", r.Seq, len(s.Invocations), asked)
			}
		}
	})
}

// The folds of single aggregates and that of the whole session are the same.
func TestStateIsWhatTheAggregatesSay(t *testing.T) {
	goldens(t, func(t *testing.T, _ string, a *txtar.Archive) {
		s := play(t, a, false)
		recs := map[events.Aggregate][]events.Record{}
		for _, r := range s.log.recs {
			recs[r.Aggregate] = append(recs[r.Aggregate], r)
		}
		for agg, of := range recs {
			switch agg.Kind {
			case events.KindTool:
				got, want := s.invocation(agg.Ref()), session.FoldInvocation(of)
				if got.Session != agg.Session && want.Status() == "" {
					continue // of a fork's past: what a stranger puts there is an alarm, and no more
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %+v, want %+v", agg, got, want)
				}
			case events.KindInference:
				got, want := s.inference(agg.Ref()), session.FoldInference(of)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %+v, want %+v", agg, got, want)
				}
				if want.Status().Ended() != (want.End() != nil) {
					t.Errorf("%s is %s and ends with %v", agg, want.Status(), want.End())
				}
			}
		}
	})
}
