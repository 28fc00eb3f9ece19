package session_test

import (
	"strings"
	"testing"

	"correx/internal/session"
	"correx/pkg/events"
)

// reviewed is a session in which a run asked for a review, and what came of it.
func reviewed(t *testing.T, then ...string) *sim {
	t.Helper()
	s := newSim(t)
	for _, l := range append([]string{
		`settings {"mode":"auto"}`, "offer w1 read shell commit", "offer m1 model:m", `cmd session.start {"session":"s1","task":"x"}`,
		"infer t1 start", `infer t1 call shell {"text":"a"}`, "tool t1-0 start", `tool t1-0 asks commit {"text":"set-1"}`,
	}, then...) {
		s.input(l)
	}
	return s
}

func TestTheModelIsToldBothResultsInOrder(t *testing.T) {
	yes := `cmd tool.approve {"session":"s1","invocation":"t1-0-c","digest":"DIGEST(t1-0-c)"}`
	for _, c := range []struct {
		name string
		then []string
		want string
	}{
		{"yes", []string{"tool t1-0-c preview", yes, "tool t1-0-c start", "tool t1-0-c done changed a.txt"},
			"The changes were approved. commit succeeded: changed a.txt"},
		{"no", []string{"tool t1-0-c preview", `cmd tool.reject {"session":"s1","invocation":"t1-0-c","reason":"too much"}`},
			"The changes were not made: a person said no: too much. Nothing was changed."},
		{"nobody", []string{"tool t1-0-c preview", "wait 10m"}, "The changes were not made: nobody answered before 2026-01-01T00:10:00Z. Nothing was changed."},
		{"failed", []string{"tool t1-0-c preview", yes, "tool t1-0-c start", "tool t1-0-c fail"},
			"The changes were approved, but not made: it broke. Nothing was changed."},
		{"lost", []string{"tool t1-0-c preview", yes, "tool t1-0-c start", "tool t1-0-c lost"},
			"The changes were approved, but not made: worker lost."},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := reviewed(t, c.then...)
			st := s.states[s1]
			asked := st.Inferences[len(st.Inferences)-1]
			if asked.ID != "t2" {
				t.Fatalf("the model is not asked again: %s", s.print(0))
			}
			p := mustPack(t, st, nil, *asked.Requested, 1<<20, wholeWindow)
			text := p.Messages[len(p.Messages)-1].Content
			if first := "shell succeeded: 1 file would be changed\nNothing is changed yet: the changes wait for a review."; text != first+"\n\n"+c.want {
				t.Errorf("the model is told\n%s\nwant\n%s\n\n%s", text, first, c.want)
			}
		})
	}
}

// While a review is open, the model is not asked, and cannot end the session.
func TestTheTurnLastsUntilTheReviewEnds(t *testing.T) {
	s := reviewed(t)
	check := func(when string) {
		t.Helper()
		if st := s.states[s1]; len(st.Inferences) != 1 || st.Status != session.Running {
			t.Errorf("%s the session is %s and has %d inferences", when, st.Status, len(st.Inferences))
		}
	}
	check("before its preview")
	s.input("tool t1-0-c preview")
	check("while a person is asked")
	s.input(`cmd tool.approve {"session":"s1","invocation":"t1-0-c","digest":"DIGEST(t1-0-c)"}`)
	check("once it is approved")
	s.input("tool t1-0-c start")
	check("while it runs")
	s.input("tool t1-0-c done")
	if st := s.states[s1]; len(st.Inferences) != 2 || st.Active.ToolCalls != 1 {
		t.Errorf("after it there are %d inferences and %d calls of the model", len(st.Inferences), st.Active.ToolCalls)
	}
}

func TestAFollowUpCitesTheEndThatAskedForIt(t *testing.T) {
	s := newSim(t)
	for _, l := range []string{"settings", "offer w1 shell commit", `cmd tool.request {"tool":"shell","parameters":{"text":"a"},"invocation":"mine"}`,
		`cmd tool.approve {"invocation":"mine","digest":"DIGEST(system/mine)"}`, "tool system/mine start"} {
		s.input(l)
	}
	i := s.invocation(events.Ref{Session: events.System, ID: "mine"})
	s.log.append(s.now, events.ToolExecutionCompleted{Ref: events.Ref{Session: events.System, ID: "mine"}, Fence: events.Fence{Started: i.StartedSeq, Nonce: i.Started.Nonce},
		Receipt: events.ToolReceipt{FollowUp: &events.FollowUp{Tool: "commit", Parameters: events.Raw(`{"text":"a"}`)}}}, i.LastSeq)
	s.fold()
	key := s.key(events.Ref{Session: events.System, ID: "mine"}, events.KindTool)
	all := session.React(s.states[key], s.world, s.now).Decisions
	if len(all) != 1 {
		t.Fatalf("decisions: %s", texts(all))
	}
	end := s.log.recs[len(s.log.recs)-1].Header.Get(events.HeaderID)
	f, ok := all[0].Fact.(events.ToolInvocationRequested)
	if !ok || all[0].Cause != end || end == "" || f.Follows != "mine" || f.Actor != "operator" || f.Command != "" || f.Tier != events.T2 {
		t.Errorf("follow-up %+v is caused by %q, the end is %q", f, all[0].Cause, end)
	}
}

// Whatever way a rule was remembered for the tool of a review, it answers none.
func TestNoRememberedAnswerIsForAReview(t *testing.T) {
	s := reviewed(t)
	rule := events.ApprovalRuleGranted{Ref: events.Ref{Session: "s1", ID: events.Main}, Tool: "commit", MaxTier: events.T3, Until: s.now.Add(1 << 40)}
	s.report(rule)
	s.input("tool t1-0-c preview")
	i := s.invocation(events.Ref{Session: "s1", ID: "t1-0-c"})
	if i.Status() != session.ApprovalRequested || len(s.states[s1].Rules) != 1 {
		t.Errorf("the review is %s with %d rules", i.Status(), len(s.states[s1].Rules))
	}
}

func TestAModelIsNotOfferedWhatOnlyFollowsUp(t *testing.T) {
	s := reviewed(t)
	for _, o := range s.states[s1].Inferences[0].Requested.Tools {
		if o.Name == "commit" {
			t.Error("the model is offered commit")
		}
	}
	s.input("cmd session.cancel " + `{"session":"s1"}`)
	s.input(`cmd session.start {"session":"s2","task":"x","tools":["shell"]}`)
	s.input("infer s2/t1 start")
	s.input(`infer s2/t1 call nothing {}`)
	if end, ok := s.invocation(events.Ref{Session: "s2", ID: "t1-0"}).End.(events.ToolExecutionRejected); !ok || strings.Contains(end.Reason, "commit") {
		t.Errorf("the model is told %+v", end)
	}
}
