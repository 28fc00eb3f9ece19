package kernel_test

import (
	"strings"
	"testing"

	"correx/internal/session"
	"correx/pkg/events"
)

// reviewOffer announces a worker with a tool, and with one that only follows up.
func (b *bench) reviewOffer() {
	commit := echoOffer(events.T2)
	commit.Name, commit.Token, commit.Digest, commit.FollowUpOnly = "commit", "commit", "d2", true
	b.append(events.WorkerStarted{
		Ref: events.Ref{Session: events.System, ID: "w1"}, Role: events.RoleToolWorker, Boot: "b1",
		Tools: []events.ToolOffer{echoOffer(events.T2), commit},
	})
}

// run plays the tool-worker for one approved invocation of no session.
func (b *bench) run(id string, r events.ToolReceipt) {
	b.t.Helper()
	b.invocation(id, session.Approved)
	ref := events.Ref{Session: events.System, ID: id}
	seq := b.append(events.ToolExecutionStarted{Ref: ref, Claim: events.Claim{Worker: "w1", Boot: "b1", Nonce: "n", Attempt: 1}})
	b.append(events.ToolExecutionCompleted{Ref: ref, Fence: events.Fence{Started: seq, Nonce: "n"}, Receipt: r})
}

func (b *bench) yes(id string) {
	b.t.Helper()
	i := b.invocation(id, session.ApprovalRequested)
	if a := b.api("tool.approve", `{"invocation":"`+id+`","digest":"`+i.Asked.Digest+`"}`); !a.OK {
		b.t.Fatalf("approve %s answered %+v", id, a)
	}
}

var asksForReview = events.ToolReceipt{Output: "1 file", FollowUp: &events.FollowUp{Tool: "commit", Parameters: events.Raw(`{"text":"set-1"}`)}}

// A run of no session ends while no kernel lives; the next one opens its review,
// and another one, which knows neither, ends it.
func TestAFollowUpOfNoSessionOutlivesKernels(t *testing.T) {
	b := start(t, settings())
	b.reviewOffer()
	if a := b.api("tool.request", `{"tool":"echo","parameters":{"text":"hi"},"invocation":"i1"}`); !a.OK {
		t.Fatalf("tool.request answered %+v", a)
	}
	b.yes("i1")
	b.invocation("i1", session.Approved)
	b.stop()
	b.run("i1", asksForReview)
	b.stop = b.kernel("kernel", settings())
	i := b.invocation("i1-c", session.ApprovalRequested)
	if i.Follows() != "i1" || i.Requested.Actor != "operator" || i.Asked.Why != "review of i1" {
		t.Errorf("the review is %+v, asked %+v", i.Requested, i.Asked)
	}
	b.stop()
	b.stop = b.kernel("kernel", settings())
	b.yes("i1-c")
	b.run("i1-c", events.ToolReceipt{Output: "done"})
	// Both are at rest now, and read again from the log for whoever asks.
	for id, want := range map[string]string{"i1": `"i1" is COMPLETED`, "i1-c": `"i1-c" is COMPLETED`} {
		if a := b.api("tool.cancel", `{"invocation":"`+id+`"}`); a.OK || !strings.Contains(a.Error, want) {
			t.Errorf("cancel %s answered %+v", id, a)
		}
	}
	if a := b.api("tool.request", `{"tool":"echo","parameters":{"text":"hi"},"invocation":"i1"}`); a.OK || !strings.Contains(a.Error, "exists") {
		t.Errorf("the same again answered %+v", a)
	}
}

// Two kernels decide side by side, and the review is opened once.
func TestTwoKernelsOpenOneFollowUp(t *testing.T) {
	b := start(t, settings())
	b.kernel("kernel-2", settings())
	b.reviewOffer()
	for _, id := range []string{"i1", "i2", "i3", "i4"} {
		if a := b.api("tool.request", `{"tool":"echo","parameters":{"text":"hi"},"invocation":"`+id+`"}`); !a.OK {
			t.Fatalf("tool.request answered %+v", a)
		}
		b.yes(id)
		b.run(id, asksForReview)
		b.yes(id + "-c")
		b.run(id+"-c", events.ToolReceipt{Output: "done"})
		i := b.invocation(id+"-c", session.Completed)
		if i.Alarms != 0 {
			t.Errorf("%s-c has %d alarms", id, i.Alarms)
		}
	}
}

// A model's call asks for a review; the kernel is another one at each step, and
// the model is asked again when the review has ended, not before.
func TestASessionsReviewAcrossKernels(t *testing.T) {
	s := settings()
	s.Mode = events.ModeAuto
	b := start(t, s)
	b.offer(events.T2) // a model
	b.reviewOffer()
	again := func() { b.stop(); b.stop = b.kernel("kernel", s) }
	if a := b.api("session.start", `{"session":"s1","task":"say hi"}`); !a.OK {
		t.Fatalf("session.start answered %+v", a)
	}
	b.reply("s1", "t1", events.Reply{Calls: []events.ToolCall{{Tool: "echo", Arguments: events.Raw(`{"text":"hi"}`)}}, Text: "call"})
	key := session.Key{Session: "s1"}
	in := func(id events.ToolInvocationID, want session.ToolInvocationStatus) session.Invocation {
		t.Helper()
		st := b.until(key, string(id)+" to be "+string(want), func(s session.State) bool { i, _ := s.Tool(id); return i.Status() == want })
		i, _ := st.Tool(id)
		return i
	}
	in("t1-0", session.Approved)
	again()
	ref := events.Ref{Session: "s1", ID: "t1-0"}
	seq := b.append(events.ToolExecutionStarted{Ref: ref, Claim: events.Claim{Worker: "w1", Boot: "b1", Nonce: "n", Attempt: 1}})
	b.append(events.ToolExecutionCompleted{Ref: ref, Fence: events.Fence{Started: seq, Nonce: "n"}, Receipt: asksForReview})
	i := in("t1-0-c", session.ApprovalRequested)
	again()
	if a := b.api("tool.reject", `{"session":"s1","invocation":"t1-0-c","reason":"no"}`); !a.OK {
		t.Fatalf("tool.reject answered %+v", a)
	}
	in("t1-0-c", session.Rejected)
	st := b.until(key, "the next turn", func(s session.State) bool { i, _ := s.Inference("t2"); return i.Status() != "" })
	if next, _ := st.Inference("t2"); next.Requested.DecidedAt <= i.RequestedSeq || len(st.Alarms) != 0 || st.Active.ToolCalls != 1 {
		t.Errorf("the next turn rests on #%d, alarms %v, %d calls", next.Requested.DecidedAt, st.Alarms, st.Active.ToolCalls)
	}
	for _, o := range st.Inferences[0].Requested.Tools {
		if o.Name == "commit" {
			t.Error("the model is offered commit")
		}
	}
}
