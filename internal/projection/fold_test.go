package projection

import (
	"bytes"
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"correx/internal/session"
	"correx/internal/testenv"
	"correx/pkg/events"
)

// What the views say of random logs is what the kernel's folds say.
func TestViewsAgreeWithTheKernel(t *testing.T) {
	held := map[events.FactName]int{}
	seed := testenv.Seed(t)
	for n := range uint64(40) {
		s := newStory(t)
		randomStory(s, rand.New(rand.NewPCG(seed, n)), 600)
		db := open(t, filepath.Join(t.TempDir(), "a.db"))
		apply(t, db, s.recs, 37)
		states := map[events.SessionID]session.State{}
		alarms := map[uint64]bool{}
		for _, r := range s.recs {
			before := states[r.Aggregate.Session]
			before.Alarms = nil // a State keeps a hundred at most
			after := session.Evolve(before, r)
			if r.Aggregate.Session == events.System {
				continue
			}
			states[r.Aggregate.Session] = after
			alarms[r.Seq] = len(after.Alarms) > 0
			if !alarms[r.Seq] && r.Fact != nil {
				held[r.Fact.FactName()]++
			}
		}
		compareHeld(t, db, alarms)
		for id, st := range states {
			compareSession(t, db, id, st)
		}
	}
	for _, f := range events.FactTypes() {
		if k := f.Name.Kind(); (k == events.KindTool || k == events.KindInference || k == events.KindSession) && held[f.Name] < 3 {
			t.Errorf("%s held only %d times: the stories prove little", f.Name, held[f.Name])
		}
	}
}

func compareHeld(t *testing.T, db *DB, alarms map[uint64]bool) {
	t.Helper()
	err := eachRow(t.Context(), db.read, func(_ []column, row []cell) error {
		seq, holds := uint64(row[0].(int64)), row[1].(bool)
		if holds == alarms[seq] {
			t.Errorf("record %d (%v): holds is %v in the database, error %v", seq, row[2], holds, row[3])
		}
		return nil
	}, `SELECT seq, holds, subject, error FROM events WHERE session <> 'system' AND session <> ''`)
	if err != nil {
		t.Fatal(err)
	}
}

func compareSession(t *testing.T, db *DB, id events.SessionID, st session.State) {
	t.Helper()
	if st.Started != nil {
		var state string
		var messages, turns int
		scan(t, db, []any{&state, &messages, &turns},
			`SELECT state, (SELECT count(*) FROM messages m WHERE m.session = s.session), turns FROM sessions s WHERE session = ?`, id)
		if state != string(st.Status) || messages != len(st.Messages) {
			t.Errorf("session %s: %s with %d messages, the fold says %s with %d", id, state, messages, st.Status, len(st.Messages))
		}
	}
	for _, i := range st.Tools {
		if i.Requested == nil {
			continue
		}
		var status, follows string
		var started, end uint64
		var cancelled, recovered, asks bool
		scan(t, db, []any{&status, &follows, &started, &end, &cancelled, &recovered, &asks},
			`SELECT status, follows, coalesce(started_seq, 0), coalesce(end_seq, 0), cancel_seq IS NOT NULL, recovered_seq IS NOT NULL, follow_up IS NOT NULL
			FROM invocations WHERE session = ? AND invocation = ?`, id, i.ID)
		if follows != string(i.Follows()) || asks != (i.FollowUp() != nil || i.Presumes() != nil) {
			t.Errorf("invocation %s/%s: follows %q and asks %v; the fold says %q, %v", id, i.ID, follows, asks, i.Follows(), i.FollowUp())
		}
		if status != string(i.Status()) || started != i.StartedSeq || end != i.EndSeq || cancelled != (i.Cancel != nil) || recovered != (i.Recovered != nil) {
			t.Errorf("invocation %s/%s: %s, started %d, end %d; the fold says %s, %d, %d", id, i.ID, status, started, end, i.Status(), i.StartedSeq, i.EndSeq)
		}
	}
	for _, i := range st.Inferences {
		if i.Requested == nil {
			continue
		}
		var status string
		var started, end uint64
		scan(t, db, []any{&status, &started, &end},
			`SELECT status, coalesce(started_seq, 0), coalesce(end_seq, 0) FROM inferences WHERE session = ? AND inference = ?`, id, i.ID)
		if status != string(i.Status()) || started != i.StartedSeq || end != i.EndSeq {
			t.Errorf("inference %s/%s: %s, started %d, end %d; the fold says %s, %d, %d", id, i.ID, status, started, end, i.Status(), i.StartedSeq, i.EndSeq)
		}
	}
}

func scan(t *testing.T, db *DB, dest []any, query string, args ...any) {
	t.Helper()
	if err := db.read.QueryRowContext(t.Context(), query, args...).Scan(dest...); err != nil {
		if err == sql.ErrNoRows {
			t.Errorf("no row for %v", args)
			return
		}
		t.Fatal(err)
	}
}

// Forgetting the folds after every record changes nothing: what was forgotten is
// folded again from the table events.
func TestForgottenFoldsComeBack(t *testing.T) {
	s := newStory(t)
	randomStory(s, rand.New(rand.NewPCG(testenv.Seed(t), 7)), 800)
	whole := open(t, filepath.Join(t.TempDir(), "whole.db"))
	apply(t, whole, s.recs, 500)
	forgetful := open(t, filepath.Join(t.TempDir(), "forgetful.db"))
	w := writer(t, forgetful)
	for _, r := range s.recs {
		if err := w.Apply(r); err != nil {
			t.Fatal(err)
		}
		w.folds = newFolds(w)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := dump(t, forgetful), dump(t, whole); !bytes.Equal(got, want) {
		t.Errorf("it comes out another:\n%s", firstDifference(got, want))
	}
}
