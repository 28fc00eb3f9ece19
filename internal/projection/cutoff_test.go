package projection

import (
	"database/sql"
	"path/filepath"
	"testing"

	"correx/pkg/events"
)

// An answer that was cut off can be told from one that did not parse.
func TestFailedInferencesSayWhyTheModelStopped(t *testing.T) {
	s := newStory(t)
	for id, finish := range map[string]events.FinishReason{"q1": events.FinishLength, "q2": events.FinishStop, "q3": ""} {
		s.add(events.InferenceRequested{Ref: ref("system", id), Decision: decided("c"), Model: "m", ModelToken: "m", Deadline: epoch})
		s.add(events.InferenceFailed{Ref: ref("system", id), Decision: decided(""), Code: events.FailModelOutput, Reason: "of no use", Finish: finish})
	}
	db := open(t, filepath.Join(t.TempDir(), "correx.db"))
	apply(t, db, s.recs, 2)
	for id, want := range map[string]sql.NullString{"q1": {String: "length", Valid: true}, "q2": {String: "stop", Valid: true}, "q3": {}} {
		var got sql.NullString
		if err := db.read.QueryRowContext(t.Context(), `SELECT finish_reason FROM inferences WHERE inference = ?`, id).Scan(&got); err != nil || got != want {
			t.Errorf("%s stopped for %+v, %v; want %+v", id, got, err, want)
		}
	}
}
