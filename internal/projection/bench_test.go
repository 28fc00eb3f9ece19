package projection

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"correx/pkg/events"
)

// calls is a log of approved tool calls of 1 KB, six records each.
func calls(t testing.TB, n int) []events.Record {
	s := newStory(t)
	parameters := fmt.Sprintf(`{"text":%q}`, fmt.Sprintf("%01000d", 0))
	digest := digestOf("echo", parameters, nil)
	for i := range n {
		session, id := fmt.Sprintf("s%d", i/10), fmt.Sprintf("t%d-0", i%10)
		if i%10 == 0 {
			s.add(events.SessionStarted{Ref: mainRef(session), Decision: decided("c-" + session), Task: "call echo", Mode: events.ModePrompt})
		}
		s.requested(session, id, "echo", events.T2, parameters, fmt.Sprintf("c1-%d", i))
		s.asked(session, id, "echo", events.T2, digest)
		s.granted(session, id, "echo", events.T2, digest, fmt.Sprintf("c2-%d", i))
		started := s.startedTool(session, id, 1)
		s.completedTool(session, id, started, 1, "some words that can be searched for")
	}
	return s.recs
}

const benchBatch = 500

// BenchmarkApply is records a second into SQLite, in batches of 500.
func BenchmarkApply(b *testing.B) {
	recs := calls(b, 2000)
	for i := 0; b.Loop(); i++ {
		apply(b, open(b, filepath.Join(b.TempDir(), "a.db")), recs, benchBatch)
	}
	b.ReportMetric(float64(len(recs)*b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkApplyFloor is the same statements in a bare loop, known beforehand.
func BenchmarkApplyFloor(b *testing.B) {
	recs := calls(b, 2000)
	type statement struct {
		query string
		args  []any
	}
	var all []statement
	w := writer(b, open(b, filepath.Join(b.TempDir(), "a.db")))
	w.Tee = func(query string, args []any) {
		all = append(all, statement{query, append([]any(nil), args...)})
	}
	for i, r := range recs {
		if err := w.Apply(r); err != nil {
			b.Fatal(err)
		}
		if (i+1)%benchBatch == 0 || i == len(recs)-1 {
			if err := w.Commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		db := open(b, filepath.Join(b.TempDir(), "a.db"))
		for _, pragma := range pragmas {
			if _, err := db.setup.ExecContext(b.Context(), pragma); err != nil {
				b.Fatal(err)
			}
		}
		prepared := map[string]*sql.Stmt{}
		for _, s := range all {
			p := prepared[s.query]
			if p == nil {
				var err error
				if p, err = db.setup.PrepareContext(b.Context(), s.query); err != nil {
					b.Fatal(err)
				}
				prepared[s.query] = p
			}
			if _, err := p.Exec(s.args...); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(len(recs)*b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkRebuild is records a second from a real server into SQLite.
func BenchmarkRebuild(b *testing.B) {
	bus := startBus(b)
	recs := calls(b, 2000)
	publish(b, bus.JetStream(b), recs)
	log := openLog(b, bus.URL())
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "a.db")
		if err := Rebuild(b.Context(), path, Identity(log.Identity()), log, func(uint64, uint64) {}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(recs)*b.N)/b.Elapsed().Seconds(), "records/s")
}
