package projection

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/approval"
	"correx/internal/session"
	"correx/pkg/audit"
	"correx/pkg/events"
)

var testIdentity = Identity{Stream: "EVENTS", Created: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}

var epoch = time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)

// A story is a log in the making.
type story struct {
	t    testing.TB
	recs []events.Record
	last map[events.Aggregate]uint64

	// Where aggregates stand, see randomStory.
	tools  map[events.Aggregate]session.Invocation
	claims map[events.Aggregate]events.Fence
}

func newStory(t testing.TB) *story {
	return &story{t: t, last: map[events.Aggregate]uint64{},
		tools: map[events.Aggregate]session.Invocation{}, claims: map[events.Aggregate]events.Fence{}}
}

// add puts a fact behind the others and returns its sequence.
func (s *story) add(f events.Fact) uint64 {
	s.t.Helper()
	a := events.AggregateOf(f)
	subject, h, data, err := events.Encode(f, events.Source{Name: "test"}, s.last[a], s.now())
	if err != nil {
		s.t.Fatal(err)
	}
	seq := s.message(subject, h, data)
	s.last[a] = seq
	return seq
}

// message puts any message behind the others.
func (s *story) message(subject string, h events.Header, data []byte) uint64 {
	seq := uint64(len(s.recs) + 1)
	s.recs = append(s.recs, events.Decode(seq, s.now(), subject, h, data))
	return seq
}

// checkpoint is a signed one of the records up to through, as far as they are there.
func (s *story) checkpoint(through uint64) events.AuditCheckpoint {
	s.t.Helper()
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		s.t.Fatal(err)
	}
	state := audit.Begin(audit.Identity(testIdentity))
	for n := range through {
		var hash audit.Hash
		if n < uint64(len(s.recs)) {
			hash = hashRecord(s.recs[n])
		}
		state.Add(hash)
	}
	c, err := audit.Sign(key, audit.Identity(testIdentity), state, 0, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// refuse takes the last record's fact away, as who verifies it does.
func (s *story) refuse(err error) {
	r := &s.recs[len(s.recs)-1]
	r.Fact, r.Err = nil, err
}

func (s *story) now() time.Time {
	return epoch.Add(time.Duration(len(s.recs)) * 1500 * time.Millisecond)
}

func decided(command string) events.Decision {
	return events.Decision{DecidedAt: 1, Now: epoch, Command: events.CommandID(command), Actor: "operator"}
}

func ref(session, id string) events.Ref {
	return events.Ref{Session: events.SessionID(session), ID: id}
}

func mainRef(session string) events.Ref { return ref(session, events.Main) }

const testPolicy = "policy1"

func digestOf(tool, parameters string, base []events.BaseHash) string {
	return approval.Digest(tool, events.Raw(parameters), base, testPolicy)
}

// claimOf is one worker's claim.
func claimOf(attempt int) events.Claim {
	return events.Claim{Worker: "w1", Boot: "boot1", Nonce: fmt.Sprintf("nonce%d", attempt), Attempt: attempt}
}

// requested asks for a tool.
func (s *story) requested(session, id, tool string, tier events.Tier, parameters, command string) {
	s.t.Helper()
	s.add(events.ToolInvocationRequested{Ref: ref(session, id), Decision: decided(command), Tier: tier, Token: tool, Offer: "offer-" + tool,
		Request: events.ToolRequest{Invocation: events.ToolInvocationID(id), Session: events.SessionID(session),
			Stage: "turn-1", Tool: tool, Parameters: events.Raw(parameters)}})
}

func (s *story) asked(session, id, tool string, tier events.Tier, digest string) {
	s.t.Helper()
	s.add(events.ApprovalRequested{Ref: ref(session, id), Decision: decided(""), Token: tool, Tool: tool, Tier: tier,
		Digest: digest, Policy: testPolicy, Why: "mode prompt", Deadline: epoch.Add(time.Hour)})
}

func (s *story) granted(session, id, tool string, tier events.Tier, digest, command string) {
	s.t.Helper()
	s.add(events.ApprovalGranted{Ref: ref(session, id), Decision: decided(command), Token: tool, Tool: tool, Tier: tier,
		Digest: digest, Policy: testPolicy, By: "person", Scope: events.ScopeOnce, Reason: "looks fine",
		Until: epoch.Add(2 * time.Hour), Key: "key", Signature: "signature"})
}

func (s *story) startedTool(session, id string, attempt int) uint64 {
	s.t.Helper()
	return s.add(events.ToolExecutionStarted{Ref: ref(session, id), Claim: claimOf(attempt), Isolation: events.IsolationFull})
}

func (s *story) completedTool(session, id string, started uint64, attempt int, output string) {
	s.t.Helper()
	s.add(events.ToolExecutionCompleted{Ref: ref(session, id), Fence: events.Fence{Started: started, Nonce: claimOf(attempt).Nonce},
		Receipt: events.ToolReceipt{Output: output, Structured: events.Raw(`{"n":9007199254740993}`), Duration: 17 * time.Millisecond,
			Affected: []string{"a.txt"}, Tier: events.T2, Time: s.now(), Metadata: map[string]string{"k": "v"},
			Diff: "--- a\n+++ b\n", Isolation: events.IsolationFull,
			Artifacts: []events.ArtifactRef{{Name: "stdout", SHA256: "ab", Size: 3, MediaType: "text/plain"}}}})
}
