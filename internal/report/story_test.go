package report

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/approval"
	"correx/pkg/events"
)

// hostile is what a model, a tool or a stranger may write to take over a page or
// a terminal, or to make it show something else.
const hostile = `</pre><script>alert(1)</script><img src=x onerror=alert(2)>"'&` + "\u202egnp.exe\u202c\u200b\ufeff\x1b[2J\x00\xff" + `<style>*{display:none}</style>{{.}}` + "\n  signature  by me"

// A story is the records of a session in the making.
type story struct {
	t    *testing.T
	key  nkeys.KeyPair
	recs []events.Record
	last map[events.Aggregate]uint64
}

func (s *story) add(f events.Fact) uint64 {
	s.t.Helper()
	a, seq := events.AggregateOf(f), uint64(len(s.recs)+1)
	at := epoch.Add(time.Duration(seq) * 1500 * time.Millisecond)
	subject, h, data, err := events.Encode(f, events.Source{Name: "test"}, s.last[a], at)
	if err != nil {
		s.t.Fatal(err)
	}
	s.recs = append(s.recs, events.Decode(seq, at, subject, h, data))
	s.last[a] = seq
	return seq
}

func ref(id string) events.Ref { return events.Ref{Session: "s1", ID: id} }

func decided(command string) events.Decision {
	return events.Decision{DecidedAt: 1, Now: epoch, Command: events.CommandID(command), Actor: "alice"}
}

const params = `{"operation":"write","path":"notes/a.txt","content":"` + "one\\ntwo" + `"}`

const diff = "--- notes/a.txt\n+++ notes/a.txt\n@@ -1,2 +1,2 @@\n one\n-2\n+two\n"

// told is a session with each thing that a report tells.
func told(t *testing.T) *story {
	t.Helper()
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{3}, 32))
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, key: key, last: map[events.Aggregate]uint64{}}
	s.add(events.SessionStarted{Ref: ref("main"), Decision: decided("1-abc"), Task: "Write the notes.\nThen stop.", Model: "smol:135m",
		Mode: events.ModePrompt, Tools: []string{"file_write", "shell"}})
	s.add(events.StageEntered{Ref: ref("main"), Decision: decided(""), Stage: "turn-1"})
	s.add(events.InferenceRequested{Ref: ref("t1"), Decision: decided(""), Stage: "turn-1", Model: "smol:135m", ModelToken: "smol", Through: 2, Deadline: epoch})
	claim := s.add(events.InferenceStarted{Ref: ref("t1"), Claim: events.Claim{Worker: "m1", Boot: "b", Nonce: "n", Attempt: 1}})
	s.add(events.InferenceCompleted{Ref: ref("t1"), Fence: events.Fence{Started: claim, Nonce: "n"}, Usage: events.TokenUsage{Total: 25}, PromptDigest: "d1",
		Reply: events.Reply{Text: "x", Calls: []events.ToolCall{{Tool: "file_write", Arguments: events.Raw(params)}}}, Finish: events.FinishStop})
	s.good("t1-0")
	s.add(events.MessageAdded{Ref: ref("main"), Decision: decided("2-abc"), Role: events.RoleUser, Text: hostile})
	s.denied("t1-1")
	s.failed("t1-2")
	s.forged("t1-3")
	s.add(events.SessionCancelled{Ref: ref("main"), Decision: decided("9-abc"), Reason: "enough"})
	return s
}

func (s *story) requested(id, tool, parameters string) {
	s.add(events.ToolInvocationRequested{Ref: ref(id), Decision: decided(""), Tier: events.T2, Token: tool,
		Request: events.ToolRequest{Invocation: events.ToolInvocationID(id), Session: "s1", Tool: tool, Parameters: events.Raw(parameters)}})
}

func (s *story) asked(id, tool, parameters string, base []events.BaseHash) string {
	digest := approval.Digest(tool, events.Raw(parameters), base, "p1")
	s.add(events.ApprovalRequested{Ref: ref(id), Decision: decided(""), Token: tool, Tool: tool, Tier: events.T2, Digest: digest, Policy: "p1",
		Why: "mode prompt", Deadline: epoch.Add(time.Hour), Notes: []string{"a note"}})
	return digest
}

func (s *story) granted(id, tool, digest string) {
	g := events.ApprovalGranted{Ref: ref(id), Decision: decided("3-abc"), Token: tool, Tool: tool, Tier: events.T2, Digest: digest, Policy: "p1",
		By: "person", Scope: events.ScopeOnce, Reason: "looks fine", Until: epoch.Add(time.Hour)}
	g, err := approval.Sign(s.key, approval.StreamIdentity(stream), g)
	if err != nil {
		s.t.Fatal(err)
	}
	s.add(g)
}

func (s *story) started(id string) events.Fence {
	seq := s.add(events.ToolExecutionStarted{Ref: ref(id), Claim: events.Claim{Worker: "w1", Boot: "b", Nonce: "n", Attempt: 1}, Isolation: events.IsolationFull})
	return events.Fence{Started: seq, Nonce: "n"}
}

func (s *story) good(id string) {
	base := []events.BaseHash{{Path: "notes/a.txt"}}
	s.requested(id, "file_write", params)
	s.add(events.ToolPreviewed{Ref: ref(id), Worker: "w1", Valid: true, Tier: events.T2, Diff: diff, Base: base, Affected: []string{"notes/a.txt"}})
	s.granted(id, "file_write", s.asked(id, "file_write", params, base))
	s.add(events.ToolExecutionCompleted{Ref: ref(id), Fence: s.started(id), Receipt: events.ToolReceipt{Output: "wrote notes/a.txt", Diff: diff,
		Affected: []string{"notes/a.txt"}, Duration: 12 * time.Millisecond, Isolation: events.IsolationFull, Tier: events.T2, Time: epoch,
		Artifacts: []events.ArtifactRef{{Name: "stdout", SHA256: "ab", Size: 70000}}}})
}

func (s *story) denied(id string) {
	s.requested(id, "shell", `{"argv":["rm","-rf","/"]}`)
	s.asked(id, "shell", `{"argv":["rm","-rf","/"]}`, nil)
	s.add(events.ApprovalDenied{Ref: ref(id), Decision: decided("4-abc"), Reason: "certainly not"})
	s.add(events.ToolExecutionRejected{Ref: ref(id), Decision: decided(""), Tier: events.T2, Reason: "a person said no: certainly not", Denied: true})
}

// failed is a run that failed, of which everything that a stranger fills in is
// hostile.
func (s *story) failed(id string) {
	quoted, err := json.Marshal(map[string]string{"argv": hostile})
	if err != nil {
		s.t.Fatal(err)
	}
	s.requested(id, "shell", string(quoted))
	s.add(events.ToolPreviewed{Ref: ref(id), Worker: "w1", Valid: true, Tier: events.T2, Diff: "+" + hostile + "\n-" + hostile, Notes: []string{hostile}, Affected: []string{hostile}})
	s.granted(id, "shell", s.asked(id, "shell", string(quoted), nil))
	s.add(events.ToolExecutionFailed{Ref: ref(id), Fence: s.started(id), Reason: hostile, Effects: events.EffectsKept,
		Receipt: &events.ToolReceipt{ExitCode: 3, Output: hostile, Diff: hostile, Affected: []string{hostile}, Time: epoch}})
}

// forged is an approval that is signed by somebody else, and does not hold.
func (s *story) forged(id string) {
	s.requested(id, "shell", `{"argv":["true"]}`)
	real := s.key
	s.key, _ = nkeys.CreateUser()
	s.granted(id, "shell", s.asked(id, "shell", `{"argv":["true"]}`, nil))
	s.key = real
	r := &s.recs[len(s.recs)-1]
	r.Fact, r.Err = nil, approval.ErrForged
}
