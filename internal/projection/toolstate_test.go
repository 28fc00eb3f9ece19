package projection

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/internal/testenv"
	"correx/pkg/events"
)

// The table invocations is what ReduceTools makes of each session's own part of the
// stream: a projector that is stopped and started again follows random sequences of
// facts on a real server, and each invocation is compared, with all its columns that
// a [session.ToolInvocationRecord] has.
func TestInvocationsAreTheFoldedToolState(t *testing.T) {
	sessions := 60
	if os.Getenv("CORREX_SOAK") != "" {
		sessions = 5000
	}
	const each = 60 // records a session
	rng := rand.New(rand.NewPCG(testenv.Seed(t), 31))
	bus := startBus(t)
	log := openLog(t, bus.URL())
	path := filepath.Join(t.TempDir(), "a.db")
	s := newStory(t)
	for from := 0; from < sessions*each; from = len(s.recs) {
		for range sessions * each / 6 {
			randomRecord(s, rng, sessions, 4)
		}
		p, stop := following(t, log, path)
		publish(t, bus.JetStream(t), wellFormed(s.recs)[from:])
		wait(t, p, uint64(len(s.recs)))
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	seen := compareToolStates(t, log, path, sessions)
	for _, status := range []session.ToolInvocationStatus{session.Requested, session.Previewed, session.ApprovalRequested, session.Denied, session.Expired,
		session.Approved, session.Started, session.CancelRequested, session.Completed, session.Failed, session.Rejected} {
		if seen[string(status)] == 0 {
			t.Errorf("no invocation is %s: the sequences prove little", status)
		}
	}
	for what, n := range map[string]int{"receipts": seen["receipt"], "follow-ups": seen["follows"], "raised tiers": seen["raised"]} {
		if n == 0 {
			t.Errorf("there were no %s: the sequences prove little", what)
		}
	}
}

// compareToolStates folds each session of the stream, and counts what it saw.
func compareToolStates(t *testing.T, log *eventlog.Log, path string, sessions int) map[string]int {
	t.Helper()
	db, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	recs, err := log.ReadFilter(t.Context(), All, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	states := map[events.SessionID]session.ToolState{}
	for _, r := range recs {
		states[r.Aggregate.Session] = session.ReduceTools(states[r.Aggregate.Session], r)
	}
	seen := map[string]int{}
	for n := range sessions {
		id := events.SessionID(fmt.Sprintf("s%d", n))
		state, rows := states[id], recordsOf(t, db, id)
		if len(rows) != len(state.Invocations) {
			t.Errorf("session %s has %d rows, and %d invocations on the log", id, len(rows), len(state.Invocations))
			continue
		}
		for i, want := range state.Invocations {
			if got, want := said(t, rows[i]), said(t, want); got != want {
				t.Errorf("session %s: the table says\n%s\nthe log\n%s", id, got, want)
			}
			seen[string(want.Status)]++
			if want.Receipt != nil {
				seen["receipt"]++
			}
			if want.Follows != "" {
				seen["follows"]++
			}
			if first := db.tierAsked(t, id, want.ID); first != want.Tier.String() {
				seen["raised"]++
			}
		}
	}
	return seen
}

// tierAsked is the tier of an invocation's request.
func (db *DB) tierAsked(t *testing.T, id events.SessionID, invocation events.ToolInvocationID) (tier string) {
	t.Helper()
	scan(t, db, []any{&tier}, `SELECT body ->> '$.tier' FROM events
		WHERE session = ? AND kind = 'tool' AND id = ? AND fact = 'tool.requested' AND holds`, id, invocation)
	return tier
}

// said is an invocation as text, with its parameters as they stand, byte for byte.
func said(t *testing.T, r session.ToolInvocationRecord) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %q", b, r.Request.Parameters)
}

// recordsOf reads a session's invocations from the table, in the order of their
// requests.
func recordsOf(t *testing.T, db *DB, id events.SessionID) (out []session.ToolInvocationRecord) {
	t.Helper()
	err := eachRow(t.Context(), db.read, func(cols []column, row []cell) error {
		item, err := object(cols, row)
		if err != nil {
			return err
		}
		var r invocationRow
		if err := json.Unmarshal(item, &r); err != nil {
			return fmt.Errorf("%w: %s", err, item)
		}
		out = append(out, r.record())
		return nil
	}, `SELECT * FROM invocations WHERE session = ? ORDER BY seq`, id)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// An invocationRow is a row of invocations as who reads JSON has it.
type invocationRow struct {
	Session, Invocation, Status string
	Tool, Stage, Follows        string
	Tier                        events.Tier
	Parameters                  events.Raw
	RequestedAt                 time.Time         `json:"requested_at"`
	CompletedAt                 *time.Time        `json:"completed_at"`
	ExitCode                    *int              `json:"exit_code"` // of those with a receipt
	Output                      string            `json:"output"`
	Structured                  events.Raw        `json:"structured_output"`
	Affected                    []string          `json:"affected_entities"`
	Duration                    time.Duration     `json:"duration_ns"`
	ReceiptTier                 events.Tier       `json:"receipt_tier"`
	Time                        time.Time         `json:"receipt_timestamp"`
	Metadata                    map[string]string `json:"metadata"`
	Diff                        string            `json:"diff"`
	Isolation                   events.Isolation  `json:"receipt_isolation"`
	Artifacts                   []events.ArtifactRef
	FollowUp                    *events.FollowUp `json:"follow_up"`
}

func (r invocationRow) record() session.ToolInvocationRecord {
	id := events.ToolInvocationID(r.Invocation)
	out := session.ToolInvocationRecord{ID: id, Name: r.Tool, Tier: r.Tier, Status: session.ToolInvocationStatus(r.Status),
		Follows: events.ToolInvocationID(r.Follows), RequestedAt: r.RequestedAt, CompletedAt: r.CompletedAt,
		Request: events.ToolRequest{Invocation: id, Session: events.SessionID(r.Session), Stage: events.StageID(r.Stage), Tool: r.Tool, Parameters: r.Parameters}}
	if r.ExitCode != nil {
		if string(r.Structured) == "null" {
			r.Structured = nil
		}
		out.Receipt = &events.ToolReceipt{ExitCode: *r.ExitCode, Output: r.Output, Structured: r.Structured, Affected: r.Affected, Duration: r.Duration,
			Tier: r.ReceiptTier, Time: r.Time, Metadata: r.Metadata, Diff: r.Diff, Isolation: r.Isolation, Artifacts: r.Artifacts, FollowUp: r.FollowUp}
	}
	return out
}
