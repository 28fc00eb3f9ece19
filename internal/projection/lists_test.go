package projection

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"correx/pkg/events"
)

// fullRequests are requests for each combination of what q takes.
func fullRequests(q Query) []Request {
	rs := []Request{{}}
	for _, field := range q.takes {
		if field == "since" || field == "until" {
			continue // these become bounds of seq
		}
		for _, r := range rs {
			switch field {
			case "session":
				r.Session = "s1"
			case "state":
				r.State = q.states[0]
			case "tool":
				r.Tool = "echo"
			case "model":
				r.Model = "m"
			case "text":
				r.Text = "task"
			}
			rs = append(rs, r)
		}
	}
	return rs
}

// reading is a step of a plan that looks at each row of a table, or sorts.
var reading = regexp.MustCompile(`^SCAN |TEMP B-TREE`)

// No list reads a whole table or sorts one, whatever it is asked.
func TestListsUseIndexes(t *testing.T) {
	if hasFTS == "none" {
		t.Skip("without FTS5 a search reads the texts")
	}
	db := open(t, filepath.Join(t.TempDir(), "a.db"))
	for _, q := range AllQueries() {
		if q.list == nil {
			continue
		}
		for _, r := range fullRequests(q) {
			if q.need == "text" && r.Text == "" {
				continue
			}
			for _, bounded := range []bool{false, true} {
				l := q.list(r)
				if bounded {
					l.between(3, 9)
				}
				args := append([]any{1, 2}, l.args...)
				rows, err := db.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+l.sql(), args...)
				if err != nil {
					t.Fatalf("query.%s %+v: %v\n%s", q.Name, r, err, l.sql())
				}
				for rows.Next() {
					var id, parent, unused int
					var step string
					if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
						t.Fatal(err)
					}
					// The full-text index is a virtual table: M says that it is searched.
					if reading.MatchString(step) && !regexp.MustCompile(`VIRTUAL TABLE INDEX \d+:.*M`).MatchString(step) {
						t.Errorf("query.%s %+v: %s\n%s", q.Name, r, step, l.sql())
					}
				}
				if err := rows.Err(); err != nil {
					t.Fatal(err)
				}
				rows.Close()
			}
		}
	}
}

// While rows are added, the pages of a list show each row that was there at the
// beginning once, and none twice.
func TestPagesWhileRowsAreAdded(t *testing.T) {
	for _, c := range []struct{ noun, table, request string }{
		{"sessions", "sessions", `{}`}, {"invocations", "invocations", `{}`}, {"commands", "commands", `{}`},
		{"approvals", "approvals", `{"state":"all"}`}, {"invocations", "invocations WHERE tool = 'echo'", `{"tool":"echo"}`},
	} {
		rng := rand.New(rand.NewPCG(7, uint64(len(c.table))))
		s := newStory(t)
		randomStory(s, rng, 2000)
		db := open(t, filepath.Join(t.TempDir(), "a.db"))
		apply(t, db, s.recs[:1000], 100)
		before := keysOf(t, db, c.table)
		if len(before) < 3 {
			t.Fatalf("%s: only %d rows", c.table, len(before))
		}
		r := requestOf(t, c.request)
		seen, added := map[int64]int{}, 1000
		for {
			r.Limit = 1 + rng.IntN(5)
			a, err := db.Queries().Ask(t.Context(), queryOf(t, c.noun), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, seq := range seqsOf(t, a) {
				seen[seq]++
			}
			if !a.More {
				break
			}
			r.Cursor = a.Next
			if next := min(added+1+rng.IntN(20), len(s.recs)); next > added {
				apply(t, db, s.recs[added:next], 100)
				added = next
			}
		}
		for _, seq := range before {
			if seen[seq] != 1 {
				t.Errorf("%s %s: row %d was shown %d times", c.noun, c.request, seq, seen[seq])
			}
		}
		if len(seen) != len(before) {
			t.Errorf("%s %s: %d rows were shown, of %d", c.noun, c.request, len(seen), len(before))
		}
	}
}

func TestListsByTime(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"))
	s := newStory(t)
	for k := range 9 {
		s.add(events.SessionStarted{Ref: mainRef(fmt.Sprint("s", k)), Task: "task", Mode: events.ModePrompt})
	}
	ask := func(r Request) string {
		a, err := db.Queries().Ask(t.Context(), queryOf(t, "sessions"), r)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(seqsOf(t, a))
	}
	if got := ask(Request{Since: stamp(s.recs[0].Time)}); got != "[]" {
		t.Errorf("an empty database answers %s", got)
	}
	apply(t, db, s.recs, 9)
	at := func(k int) string { return s.recs[k-1].Time.Format(time.RFC3339Nano) }
	for _, c := range []struct{ since, until, want string }{
		{at(7), "", "[9 8 7]"}, {"", at(3), "[2 1]"}, {at(4), at(6), "[5 4]"}, {at(6), at(4), "[]"},
		{"1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "[9 8 7 6 5 4 3 2 1]"}, {"2999-01-01T00:00:00+01:00", "", "[]"},
	} {
		if got := ask(Request{Since: c.since, Until: c.until}); got != c.want {
			t.Errorf("since %q until %q: %s, not %s", c.since, c.until, got, c.want)
		}
	}
}

// An older database gets the indexes when it is opened.
func TestIndexesAreMadeOnOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path)
	const indexes = `SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name)`
	names := func(db *DB) (s string) {
		if err := db.read.QueryRowContext(t.Context(), indexes).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := names(db)
	for _, line := range strings.Split(indexSQL, "\n") {
		if name, ok := strings.CutPrefix(line, "CREATE INDEX IF NOT EXISTS "); ok {
			if _, err := db.setup.ExecContext(t.Context(), "DROP INDEX "+strings.Fields(name)[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := db.setup.ExecContext(t.Context(), `CREATE INDEX approvals_pending ON approvals (seq) WHERE status = 'PENDING'`); err != nil {
		t.Fatal(err)
	}
	if got := names(db); got == want {
		t.Fatal("the indexes are still there")
	}
	db.Close()
	if got := names(open(t, path)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func queryOf(t *testing.T, noun string) Query {
	t.Helper()
	for _, q := range AllQueries() {
		if q.Name == noun {
			return q
		}
	}
	t.Fatalf("there is no query.%s", noun)
	return Query{}
}

func requestOf(t *testing.T, body string) (r Request) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func seqsOf(t *testing.T, a Answer) (seqs []int64) {
	t.Helper()
	for _, raw := range a.Items {
		var row struct{ Seq int64 }
		if err := json.Unmarshal(raw, &row); err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, row.Seq)
	}
	return seqs
}

// keysOf are the seqs of a table's rows.
func keysOf(t *testing.T, db *DB, table string) (seqs []int64) {
	t.Helper()
	err := eachRow(t.Context(), db.read, func(_ []column, row []cell) error {
		seqs = append(seqs, row[0].(int64))
		return nil
	}, "SELECT seq FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	return seqs
}

func TestApprovalsSayHowLongTheyWaited(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "a.db"))
	s := newStory(t)
	const call = `{}`
	s.requested("s1", "t1-0", "echo", events.T2, call, "")
	digest := digestOf("echo", call, nil)
	s.asked("s1", "t1-0", "echo", events.T2, digest)
	s.requested("s1", "t2-0", "echo", events.T2, call, "")
	s.granted("s1", "t1-0", "echo", events.T2, digest, "c1")
	s.asked("s1", "t2-0", "echo", events.T2, digest)
	apply(t, db, s.recs, 10)
	want := s.recs[3].Time.Sub(s.recs[1].Time).Seconds()
	a, err := db.Queries().Ask(t.Context(), queryOf(t, "approvals"), Request{State: "all"})
	if err != nil || len(a.Items) != 2 {
		t.Fatalf("%d items, %v", len(a.Items), err)
	}
	for i, want := range []string{`"waited_s":null`, fmt.Sprintf(`"waited_s":%g`, want)} {
		if !strings.Contains(string(a.Items[i]), want) {
			t.Errorf("%s is not in %s", want, a.Items[i])
		}
	}
	if want < 0.001 {
		t.Errorf("the story's times are %v s apart", want)
	}
}
