package transfer_test

import (
	"encoding/json"
	"testing"
	"time"

	"correx/internal/transfer"
	"correx/pkg/events"
)

// valid holds a trajectory against the rules of ATIF 1.7.
func valid(t *testing.T, tr transfer.Trajectory) {
	t.Helper()
	if tr.SchemaVersion != "ATIF-v1.7" || tr.SessionID == "" || tr.Agent.Name == "" || tr.Agent.Version == "" || tr.FinalMetrics.Steps != len(tr.Steps) {
		t.Errorf("the trajectory lacks what it must have: %+v", tr)
	}
	for n, s := range tr.Steps {
		calls := map[string]bool{}
		for _, c := range s.ToolCalls {
			var arguments map[string]any
			if err := json.Unmarshal(c.Arguments, &arguments); err != nil || calls[c.ID] || c.ID == "" || c.Function == "" {
				t.Errorf("step %d has the call %+v (%v)", n+1, c, err)
			}
			calls[c.ID] = true
		}
		agent := s.Source == "agent"
		if s.ID != n+1 || !agent && s.Source != "user" && s.Source != "system" || s.Timestamp.IsZero() {
			t.Errorf("step %d is %+v", n+1, s)
		}
		if !agent && (s.ModelName != "" || s.Reasoning != "" || len(s.ToolCalls) > 0 || s.Metrics != nil || s.LLMCalls != nil) {
			t.Errorf("step %d is of %s and has what only an agent's may: %+v", n+1, s.Source, s)
		}
		if s.Observation != nil {
			for _, r := range s.Observation.Results {
				if r.Call != "" && !calls[r.Call] {
					t.Errorf("step %d has a result of %s, which it did not call", n+1, r.Call)
				}
			}
		}
	}
}

// A tale appends facts of session s1, each behind the last of its aggregate.
type tale struct {
	t       *testing.T
	records []events.Record
	last    map[events.Aggregate]uint64
}

func (s *tale) add(f events.Fact) uint64 {
	s.t.Helper()
	seq := uint64(len(s.records) + 1)
	at := time.Unix(1_800_000_000+int64(seq), 0).UTC()
	a := events.AggregateOf(f)
	subject, h, data, err := events.Encode(f, events.Source{Name: "kernel"}, s.last[a], at)
	if err != nil {
		s.t.Fatal(err)
	}
	r := events.Decode(seq, at, subject, h, data)
	if r.Err != nil {
		s.t.Fatal(r.Err)
	}
	s.records, s.last[a] = append(s.records, r), seq
	return seq
}

func ref(id string) events.Ref { return events.Ref{Session: "s1", ID: id} }

func told(t *testing.T) []events.Record {
	s := &tale{t: t, last: map[events.Aggregate]uint64{}}
	final := "all done"
	s.add(events.SessionStarted{Ref: ref("main"), Task: "do it", System: "be brief", Mode: "auto"})
	s.add(events.StageEntered{Ref: ref("main"), Stage: "1"})
	s.add(events.InferenceRequested{Ref: ref("t1"), Stage: "1", Model: "m", ModelToken: "m", Through: 2})
	claim := s.add(events.InferenceStarted{Ref: ref("t1"), Claim: events.Claim{Worker: "w", Boot: "b", Nonce: "n", Attempt: 1}})
	s.add(events.InferenceCompleted{Ref: ref("t1"), Fence: events.Fence{Started: claim, Nonce: "n"},
		Reply: events.Reply{Text: "{}", Reasoning: "hm", Calls: []events.ToolCall{
			{Tool: "echo", Arguments: events.Raw(`{"text":"a"}`)}, {Tool: "echo", Arguments: events.Raw(`{"text":"b"}`)}}},
		Usage: events.TokenUsage{Prompt: 10, Completion: 4, Total: 14, Cached: 3}})
	for n, id := range []string{"t1-0", "t1-1"} {
		s.add(events.ToolInvocationRequested{Ref: ref(id), Tier: events.T1, Token: "echo", Request: events.ToolRequest{
			Invocation: events.ToolInvocationID(id), Session: "s1", Stage: "1", Tool: "echo", Parameters: events.Raw(`{"text":"a"}`)}})
		if n == 1 {
			s.add(events.ToolExecutionRejected{Ref: ref(id), Tier: events.T1, Reason: "not now"})
		}
	}
	s.add(events.MessageAdded{Ref: ref("main"), Role: events.RoleUser, Text: "go on"})
	s.add(events.InferenceRequested{Ref: ref("t2"), Stage: "2", Model: "m", ModelToken: "m", Through: 9})
	claim = s.add(events.InferenceStarted{Ref: ref("t2"), Claim: events.Claim{Worker: "w", Boot: "b", Nonce: "n", Attempt: 1}})
	s.add(events.InferenceCompleted{Ref: ref("t2"), Fence: events.Fence{Started: claim, Nonce: "n"},
		Reply: events.Reply{Text: "{}", Final: &final}, Usage: events.TokenUsage{Prompt: 20, Completion: 2, Total: 22}})
	s.add(events.ToolInvocationRequested{Ref: ref("i1"), Decision: events.Decision{Actor: "ann"}, Tier: events.T1, Token: "echo",
		Request: events.ToolRequest{Invocation: "i1", Session: "s1", Stage: "2", Tool: "echo", Parameters: events.Raw(`{}`)}})
	s.add(events.SessionCancelled{Ref: ref("main"), Reason: "enough"})
	return s.records
}

func TestATrajectoryTellsTheSession(t *testing.T) {
	tr := transfer.TrajectoryOf("s1", told(t), "1")
	valid(t, tr)
	var said []string
	for _, s := range tr.Steps {
		said = append(said, s.Source+": "+s.Message)
	}
	want := []string{"system: be brief", "user: do it", "agent: {}", "user: go on", "agent: all done",
		"system: ann asked for echo {}", "system: the session was cancelled: enough"}
	if len(said) != len(want) {
		t.Fatalf("the steps are %q, want %q", said, want)
	}
	for n := range want {
		if said[n] != want[n] {
			t.Errorf("step %d is %q, want %q", n+1, said[n], want[n])
		}
	}
	s := tr.Steps[2]
	if len(s.ToolCalls) != 2 || s.ToolCalls[1].ID != "t1-1" || s.Reasoning != "hm" || s.ModelName != "m" || s.Metrics.Cached != 3 {
		t.Errorf("the first turn is %+v", s)
	}
	if s.Observation == nil || len(s.Observation.Results) != 1 || s.Observation.Results[0] != (transfer.ObservationResult{Call: "t1-1", Content: "rejected: not now"}) {
		t.Errorf("its results are %+v", s.Observation)
	}
	if m := tr.FinalMetrics; m.Prompt != 30 || m.Completion != 6 || m.Cached != 3 {
		t.Errorf("the sum is %+v", m)
	}
}
