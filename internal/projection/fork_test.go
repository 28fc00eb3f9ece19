package projection

import (
	"path/filepath"
	"testing"

	"correx/pkg/events"
)

// A fork's row says whose past it shares; what was said to it is a message and can
// be found.
func TestForkSaysWhosePastItShares(t *testing.T) {
	s := newStory(t)
	main := func(id events.SessionID) events.Ref { return events.Ref{Session: id, ID: events.Main} }
	s.add(events.SessionStarted{Ref: main("s1"), Task: "try"})
	s.add(events.SessionStarted{Ref: main("s2"), Task: "try", ForkOf: &events.Fork{Session: "s1", At: 1}, Say: "rather a zeppelin"})
	s.add(events.SessionStarted{Ref: main("s3"), Task: "never", ForkOf: &events.Fork{Session: "s1", At: 3}}) // not before it
	db := open(t, filepath.Join(t.TempDir(), "a.db"))
	apply(t, db, s.recs, 10)
	for _, c := range []struct{ query, want string }{
		{`SELECT group_concat(session || ':' || fork_of || ':' || coalesce(fork_at, '-'), ' ') FROM (SELECT * FROM sessions ORDER BY seq)`, "s1::- s2:s1:1"},
		{`SELECT group_concat(session || ':' || role || ':' || text, ' ') FROM messages`, "s2:user:rather a zeppelin"},
		{`SELECT error FROM events WHERE seq = 3`, `forked at 3 from "s1", which is not before it`},
	} {
		var got string
		if err := db.read.QueryRow(c.query).Scan(&got); err != nil || got != c.want {
			t.Errorf("%s\n gives %q (%v), want %q", c.query, got, err, c.want)
		}
	}
}
