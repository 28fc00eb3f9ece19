package session_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"correx/internal/session"
	"correx/pkg/events"
)

// Whatever a record of a session changes is told, and what did not happen is not.
func TestCompareTellsEachRecord(t *testing.T) {
	told := 0
	goldens(t, func(t *testing.T, _ string, a *txtar.Archive) {
		states := map[events.SessionID]session.State{}
		for _, r := range play(t, a, false).log.recs {
			id := r.Aggregate.Session
			if id == events.System || !strings.HasPrefix(r.Subject, "evt.") {
				continue
			}
			before := states[id]
			after := session.Evolve(before, r)
			states[id] = after
			if d := session.Compare(before, after); d.Empty() {
				t.Errorf("#%d %s changes nothing that is told", r.Seq, r.Subject)
			}
			if d := session.Compare(after, after); !d.Empty() {
				t.Errorf("#%d differs from itself: %+v", r.Seq, d)
			}
			told++
		}
	})
	if told < 300 {
		t.Errorf("only %d records were compared", told)
	}
}

// Two steps tell together what one does of all that is only added.
func TestCompareAddsUp(t *testing.T) {
	goldens(t, func(t *testing.T, _ string, a *txtar.Archive) {
		folds := map[events.SessionID][]session.State{}
		for _, r := range play(t, a, false).log.recs {
			if id := r.Aggregate.Session; id != events.System {
				var last session.State
				if n := len(folds[id]); n > 0 {
					last = folds[id][n-1]
				}
				folds[id] = append(folds[id], session.Evolve(last, r))
			}
		}
		for id, all := range folds {
			last := all[len(all)-1]
			for k, middle := range all {
				whole, first, second := session.Compare(session.State{ID: id}, last), session.Compare(session.State{ID: id}, middle), session.Compare(middle, last)
				if got, want := answers(first)+answers(second), answers(whole); got != want {
					t.Errorf("%s at %d: %d answers in two steps, %d in one", id, k, got, want)
				}
				if got := len(first.Messages) + len(second.Messages); got != len(whole.Messages) {
					t.Errorf("%s at %d: %d messages in two steps, %d in one", id, k, got, len(whole.Messages))
				}
			}
		}
	})
}

func answers(d session.Difference) (n int) {
	for _, p := range d.Approvals {
		if p.Answer != "" {
			n++
		}
	}
	return n
}

func TestCompareOneCall(t *testing.T) {
	s := newSim(t)
	s.offer([]string{"w1", "shell"})
	s.offer([]string{"m1", "model:m"})
	s.announce("")
	s.wish("session.start", `{"session":"s1","task":"x"}`)
	ref := func(id string) events.Ref { return events.Ref{Session: "s1", ID: id} }
	begun := s.states[s1]
	s.infer(ref("t1"), "start", "")
	s.infer(ref("t1"), "call", `shell {"text":"a"}`)
	s.tool(ref("t1-0"), "preview", "")
	asked := s.states[s1]
	q := asked.Tools[0].Asked
	if q == nil {
		t.Fatalf("nothing was asked:\n%s", s.print(0))
	}
	d := session.Compare(begun, asked)
	if len(d.Inferences) != 1 || d.Inferences[0].Before != session.InferenceRequested || d.Inferences[0].After != session.InferenceCompleted || !strings.Contains(d.Inferences[0].Says, "shell") {
		t.Errorf("inferences are %+v", d.Inferences)
	}
	if len(d.Calls) != 1 || d.Calls[0].Before != "" || d.Calls[0].After != session.ApprovalRequested || d.Calls[0].Tool != "shell" {
		t.Errorf("calls are %+v", d.Calls)
	}
	if len(d.Approvals) != 1 || !d.Approvals[0].Asked || d.Approvals[0].Answer != "" || d.Approvals[0].Digest != q.Digest || !d.Approvals[0].Deadline.Equal(q.Deadline) {
		t.Errorf("approvals are %+v, asked was %+v", d.Approvals, q)
	}
	if !slices.Contains(d.Fields, session.FieldChange{Field: "tool_calls", Before: "", After: "1"}) {
		t.Errorf("fields are %+v", d.Fields)
	}
	s.wish("tool.approve", `{"session":"s1","invocation":"t1-0","digest":"`+q.Digest+`"}`)
	s.tool(ref("t1-0"), "start", "")
	s.tool(ref("t1-0"), "done", "")
	d = session.Compare(asked, s.states[s1])
	if len(d.Approvals) != 1 || d.Approvals[0].Asked || d.Approvals[0].Answer != "approved" || d.Approvals[0].By != "operator" {
		t.Errorf("approvals are %+v", d.Approvals)
	}
	if len(d.Calls) != 1 || d.Calls[0].Before != session.ApprovalRequested || d.Calls[0].After != session.Completed {
		t.Errorf("calls are %+v", d.Calls)
	}
}
