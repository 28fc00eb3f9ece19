package projection

import (
	"fmt"
	"math/rand/v2"
	"time"

	"correx/internal/session"
	"correx/pkg/events"
)

// randomStory adds n records, of which many hold and many do not: each is of
// one of few aggregates, and is what may follow there or anything else.
func randomStory(s *story, rng *rand.Rand, n int) {
	for range n {
		randomRecord(s, rng, 4, n/40+1)
	}
}

// randomRecord adds a record to one of some sessions, which have calls inferences
// and as many invocations each.
func randomRecord(s *story, rng *rand.Rand, sessions, calls int) {
	session := fmt.Sprintf("s%d", rng.IntN(sessions))
	switch k := rng.IntN(10); {
	case k < 2:
		s.add(randomSession(rng, session))
	case k < 4:
		s.add(randomInference(rng, session, fmt.Sprintf("t%d", rng.IntN(calls)), s.started))
	case k < 9:
		s.add(randomTool(rng, session, fmt.Sprintf("t%d-0", rng.IntN(calls)), s))
	default:
		randomOther(s, rng, session)
	}
	s.note()
}

// started is the latest claim of an aggregate that holds.
func (s *story) started(a events.Aggregate) events.Fence { return s.claims[a] }

// note remembers where the aggregate of the last record stands.
func (s *story) note() {
	r := s.recs[len(s.recs)-1]
	switch r.Aggregate.Kind {
	case events.KindTool:
		i, _ := s.tools[r.Aggregate].Step(r) // that it does not hold is no matter
		s.tools[r.Aggregate] = i
		if i.Started != nil {
			s.claims[r.Aggregate] = events.Fence{Started: i.StartedSeq, Nonce: i.Started.Nonce}
		}
	case events.KindInference:
		if f, ok := r.Fact.(events.InferenceStarted); ok {
			s.claims[r.Aggregate] = events.Fence{Started: r.Seq, Nonce: f.Nonce}
		}
	}
}

func randomSession(rng *rand.Rand, session string) events.Fact {
	ref, d := mainRef(session), decided(fmt.Sprintf("c%d", rng.IntN(50)))
	switch rng.IntN(12) {
	case 0, 1:
		return events.SessionStarted{Ref: ref, Decision: d, Task: "a task", Mode: events.ModePrompt}
	case 2:
		return events.SessionPaused{Ref: ref, Decision: d, Reason: "paused"}
	case 3, 4:
		return events.SessionResumed{Ref: ref, Decision: d, Reason: "resumed"}
	case 5:
		return events.SessionCompleted{Ref: ref, Decision: d, Inference: "t0"}
	case 6:
		return events.SessionFailed{Ref: ref, Decision: d, Code: events.FailLimit, Reason: "turns"}
	case 7:
		if rng.IntN(20) == 0 {
			return events.SessionCancelled{Ref: ref, Decision: d, Reason: "no more"}
		}
		return events.StageEntered{Ref: ref, Decision: d, Stage: "turn-1"}
	case 8:
		return events.ApprovalRuleGranted{Ref: ref, Decision: d, Tool: "echo", MaxTier: events.T2, Until: epoch}
	}
	return events.MessageAdded{Ref: ref, Decision: d, Role: events.RoleUser, Text: fmt.Sprintf("message %d", rng.IntN(1000))}
}

func randomInference(rng *rand.Rand, session, id string, started func(events.Aggregate) events.Fence) events.Fact {
	ref := ref(session, id)
	fence := started(events.Aggregate{Session: ref.Session, Kind: events.KindInference, ID: id})
	switch rng.IntN(6) {
	case 0, 1:
		return events.InferenceRequested{Ref: ref, Decision: decided(""), Model: "m", ModelToken: "m", Deadline: epoch}
	case 2, 3:
		return events.InferenceStarted{Ref: ref, Claim: claimOf(1 + rng.IntN(2))}
	case 4:
		final := fmt.Sprintf("answer %d", rng.IntN(1000))
		return events.InferenceCompleted{Ref: ref, Fence: fence, Reply: events.Reply{Final: &final, Text: final}, Usage: events.TokenUsage{Prompt: 3, Completion: 4, Total: 7}}
	}
	if rng.IntN(2) == 0 {
		fence = events.Fence{}
	}
	return events.InferenceFailed{Ref: ref, Fence: fence, Code: events.FailServer, Reason: "crashed", Usage: events.TokenUsage{Total: 1}}
}

// likely are the choices of randomTool that lead on from a status.
var likely = map[session.ToolInvocationStatus][]int{
	"":                        {0},
	session.Requested:         {3, 4, 4, 6},
	session.Previewed:         {4},
	session.ApprovalRequested: {6, 6, 6, 8, 9},
	session.Approved:          {10},
	session.Started:           {10, 13, 15, 15},
	session.CancelRequested:   {15},
	session.Failed:            {14},
}

func randomTool(rng *rand.Rand, session, id string, s *story) events.Fact {
	ref := ref(session, id)
	call := fmt.Sprintf(`{"text":"hi\n%s","n":9007199254740993}`, id)
	a := events.Aggregate{Session: ref.Session, Kind: events.KindTool, ID: id}
	fence, choice := s.started(a), rng.IntN(16)
	if next := likely[s.tools[a].Status()]; len(next) > 0 && rng.IntN(3) > 0 {
		choice = next[rng.IntN(len(next))]
	}
	switch choice {
	case 0, 1, 2:
		f := events.ToolInvocationRequested{Ref: ref, Decision: decided(fmt.Sprintf("c%d", rng.IntN(50))), Tier: randomTier(rng), Token: "echo",
			Request: events.ToolRequest{Invocation: events.ToolInvocationID(id), Session: ref.Session, Tool: "echo", Parameters: events.Raw(call), Stage: "turn-1"}}
		if rng.IntN(4) == 0 {
			f.Follows = "t9-0"
		}
		return f
	case 3:
		return events.ToolPreviewed{Ref: ref, Worker: "w1", Valid: true, Tier: randomTier(rng)}
	case 4, 5:
		return events.ApprovalRequested{Ref: ref, Decision: decided(""), Token: "echo", Tool: "echo", Tier: randomTier(rng),
			Digest: digestOf("echo", call, nil), Policy: testPolicy, Deadline: epoch.Add(time.Hour)}
	case 6, 7:
		return events.ApprovalGranted{Ref: ref, Decision: decided(""), Token: "echo", Tool: "echo", Tier: randomTier(rng), By: "policy",
			Digest: digestOf("echo", call, nil), Policy: testPolicy, Until: epoch.Add(time.Hour)}
	case 8:
		return events.ApprovalDenied{Ref: ref, Decision: decided(""), Reason: "no"}
	case 9:
		return events.ApprovalExpired{Ref: ref, Decision: decided(""), Deadline: epoch}
	case 10, 11:
		return events.ToolExecutionStarted{Ref: ref, Claim: claimOf(1 + rng.IntN(2)), Isolation: events.IsolationNone}
	case 12:
		return events.ToolExecutionRejected{Ref: ref, Decision: decided(""), Tier: randomTier(rng), Reason: "rejected"}
	case 13:
		return events.CancelRequested{Ref: ref, Decision: decided(""), Reason: "stop"}
	case 14:
		return events.Recovered{Ref: ref, Worker: "w1", Files: []events.RecoveredFile{{Path: "a", Effects: events.EffectsRolledBack}}}
	}
	if rng.IntN(2) == 0 {
		f := events.ToolExecutionFailed{Ref: ref, Fence: fence, Reason: "failed", Effects: events.EffectsNone}
		if rng.IntN(2) == 0 {
			r := randomReceipt(rng, 1)
			f.Receipt = &r
		}
		return f
	}
	r := randomReceipt(rng, 0)
	if rng.IntN(4) == 0 {
		r.FollowUp = &events.FollowUp{Tool: "echo", Parameters: events.Raw(call)}
	}
	return events.ToolExecutionCompleted{Ref: ref, Fence: fence, Receipt: r}
}

func randomTier(rng *rand.Rand) events.Tier { return events.Tier(rng.IntN(int(events.T4) + 1)) }

// randomReceipt has of what a receipt may have, now this and now that.
func randomReceipt(rng *rand.Rand, exit int) events.ToolReceipt {
	r := events.ToolReceipt{ExitCode: exit, Tier: randomTier(rng), Duration: time.Duration(rng.IntN(1e9))}
	for _, set := range []func(){
		func() { r.Output = fmt.Sprintf("output %d", rng.IntN(1000)) },
		func() { r.Structured = events.Raw(`{"n":9007199254740993,"of":[null,{"a":1.50}]}`) },
		func() { r.Affected = []string{"a.txt", "b <&> c"} },
		func() { r.Time = epoch.Add(time.Duration(rng.IntN(1e9))) },
		func() { r.Metadata = map[string]string{"k": "v", "a": ""} },
		func() { r.Diff = "--- a\n+++ b\n" },
		func() { r.Isolation = events.IsolationFSOnly },
		func() { r.Artifacts = []events.ArtifactRef{{Name: "stdout", SHA256: "ab", Size: 1 << 40}} },
	} {
		if rng.IntN(2) == 0 {
			set()
		}
	}
	return r
}

func randomOther(s *story, rng *rand.Rand, session string) {
	id := fmt.Sprintf("t%d-0", rng.IntN(4))
	switch rng.IntN(6) {
	case 0:
		s.message("evt."+session+".tool."+id+".completed", events.Header{events.HeaderID: {"x"}}, []byte("not JSON"))
	case 1:
		s.message("evt."+session+".tool."+id+".approved.echo", events.Header{events.HeaderID: {"x"}, events.HeaderNatsStream: {"EVENTS"}}, []byte(`{}`))
	case 2:
		s.message("evt."+session+".unknown."+id+".seen", events.Header{events.HeaderID: {"x"}}, []byte{0xff, 0})
	case 3:
		s.add(events.CommandRejected{Ref: ref("system", fmt.Sprintf("c%d", rng.IntN(50))), Reasons: []string{"no"}})
	case 4:
		s.add(events.WorkerStopped{Ref: ref("system", "w1"), Boot: fmt.Sprintf("b%d", rng.IntN(3))})
	default:
		s.add(events.WorkerStarted{Ref: ref("system", "w1"), Role: events.RoleToolWorker, Boot: fmt.Sprintf("b%d", rng.IntN(3)),
			Tools: []events.ToolOffer{{Name: "echo", Token: "echo", Schema: events.Raw(`{}`)}}, Models: []events.ModelOffer{{Name: "m", Token: "m"}}})
	}
}
