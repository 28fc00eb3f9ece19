package auditor

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"correx/internal/natstest"
	"correx/pkg/audit"
	"correx/pkg/events"
)

// A forger edits a copy of a database as whoever has the file can.
type forger struct {
	t  *testing.T
	db *sql.DB
}

func (f forger) exec(query string, args ...any) {
	f.t.Helper()
	if _, err := f.db.ExecContext(f.t.Context(), query, args...); err != nil {
		f.t.Fatalf("%s: %v", query, err)
	}
}

// renumber moves the records from seq on, and what the database says of itself.
func (f forger) renumber(from uint64, by int) {
	f.t.Helper()
	f.exec(`UPDATE events SET seq = -seq WHERE seq >= ?`, from)
	f.exec(`UPDATE events SET seq = -seq + ? WHERE seq < 0`, by)
	f.exec(`UPDATE meta SET value = CAST(value + ? AS TEXT) WHERE key = 'checkpoint'`, by)
	f.believed()
}

// believed computes all that the database says of its records anew, so that it
// fits together in itself.
func (f forger) believed() {
	f.t.Helper()
	rows, err := f.db.QueryContext(f.t.Context(), `SELECT seq, time, subject, headers, body FROM events ORDER BY seq`)
	if err != nil {
		f.t.Fatal(err)
	}
	defer rows.Close()
	state, h, last := audit.Begin(f.identity()), audit.Hasher{}, audit.Hash{}
	contents := map[uint64]string{}
	for rows.Next() {
		var e audit.Event
		var at, headers string
		if err := rows.Scan(&e.Seq, &at, &e.Subject, &headers, &e.Data); err != nil {
			f.t.Fatal(err)
		}
		if e.Time, err = time.Parse(time.RFC3339Nano, at); err != nil {
			f.t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(headers), &e.Header); err != nil {
			f.t.Fatal(err)
		}
		contents[e.Seq] = h.Content(e.Subject, e.Header, e.Data).String()
		last = h.Event(e)
		state.Add(last)
	}
	if err := rows.Err(); err != nil {
		f.t.Fatal(err)
	}
	for seq, content := range contents {
		f.exec(`UPDATE events SET content_sha256 = ? WHERE seq = ?`, content, seq)
	}
	f.exec(`UPDATE meta SET value = ? WHERE key = 'chain_sha256'`, state.Chain.String())
	f.exec(`UPDATE meta SET value = ? WHERE key = 'tree_peaks'`, state.Tree.Peaks())
	f.exec(`UPDATE meta SET value = ? WHERE key = 'checkpoint_sha256'`, last.String())
	f.exec(`UPDATE meta SET value = ? WHERE key = 'checkpoint'`, fmt.Sprint(state.Tree.Size()))
}

func (f forger) identity() audit.Identity {
	f.t.Helper()
	id := audit.Identity{Stream: "EVENTS"}
	var created string
	err := f.db.QueryRowContext(f.t.Context(), `SELECT value FROM meta WHERE key = 'stream_created'`).Scan(&created)
	if err == nil {
		id.Created, err = time.Parse(time.RFC3339Nano, created)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// change makes another body.
func (f forger) change(seq int) {
	f.t.Helper()
	f.exec(`UPDATE events SET body = replace(body, ?, 'another message') WHERE seq = ?`, fmt.Sprintf("message %d", seq), seq)
}

// swap lets two records change places, each with the other's time.
func (f forger) swap(a, b int) {
	f.t.Helper()
	times := map[int]string{}
	for _, seq := range []int{a, b} {
		var at string
		if err := f.db.QueryRowContext(f.t.Context(), `SELECT time FROM events WHERE seq = ?`, seq).Scan(&at); err != nil {
			f.t.Fatal(err)
		}
		times[seq] = at
	}
	f.exec(`UPDATE events SET seq = -1 WHERE seq = ?`, a)
	f.exec(`UPDATE events SET seq = ?, time = ? WHERE seq = ?`, a, times[a], b)
	f.exec(`UPDATE events SET seq = ?, time = ? WHERE seq = -1`, b, times[b])
}

func (f forger) insert(seq int) {
	f.t.Helper()
	f.exec(`INSERT INTO events SELECT ?, time, subject, session, kind, id, fact, route, type, headers,
		replace(body, 'message', 'forgery'), content_sha256, holds, error FROM events WHERE seq = 2`, seq)
}

// Each edit of the SQLite file is found and named, from the file alone and beside
// the stream; also those that make the file fit together again in itself.
func TestTamperSQLite(t *testing.T) {
	s := newScene(t)
	for _, c := range []struct {
		name   string
		edit   func(f forger)
		alone  Kind // what verify finds in the file alone; "": nothing, it cannot
		at     uint64
		beside Kind // what compare finds
		where  uint64
	}{
		{"a body", func(f forger) { f.change(17) }, Altered, 17, Altered, 17},
		{"a body, made to fit", func(f forger) { f.change(17); f.believed() }, Altered, 17, Altered, 17},
		{"a header", func(f forger) {
			f.exec(`UPDATE events SET headers = replace(headers, '"1.0"', '"1.1"') WHERE seq = 50`)
			f.believed()
		}, Altered, 50, Altered, 50},
		{"headers that are none", func(f forger) { f.exec(`UPDATE events SET headers = '[' WHERE seq = 50`) }, Altered, 50, Altered, 50},
		{"a time", func(f forger) {
			f.exec(`UPDATE events SET time = '2020-01-01T00:00:00.000000000Z' WHERE seq = 90`)
			f.believed()
		}, Altered, 90, Altered, 90},
		{"a time that is none", func(f forger) { f.exec(`UPDATE events SET time = 'then' WHERE seq = 90`) }, Altered, 90, Altered, 90},
		{"a subject", func(f forger) {
			f.exec(`UPDATE events SET subject = 'evt.s9.session.main.message' WHERE seq = 17`)
			f.believed()
		}, Altered, 17, Altered, 17},
		{"a column that follows", func(f forger) { f.exec(`UPDATE events SET session = 's9' WHERE seq = 17`) }, Altered, 17, Altered, 17},
		{"deletion", func(f forger) { f.exec(`DELETE FROM events WHERE seq = 17`) }, Missing, 17, Missing, 17},
		{"deletion, closed up", func(f forger) {
			f.exec(`DELETE FROM events WHERE seq = 17`)
			f.renumber(18, -1)
		}, Missing, 17, Missing, 17},
		{"deletion of a checkpoint, closed up", func(f forger) {
			f.exec(`DELETE FROM events WHERE seq = 41`)
			f.renumber(42, -1)
		}, Missing, 41, Missing, 41},
		{"deletion of the last ones", func(f forger) { f.exec(`DELETE FROM events WHERE seq > 130`) }, Missing, 131, Missing, 131},
		{"insertion", func(f forger) { f.renumber(17, 1); f.insert(17); f.believed() }, Inserted, 17, Inserted, 17},
		{"insertion at the end", func(f forger) { f.insert(sceneLast + 1) }, Inserted, sceneLast + 1, Inserted, sceneLast + 1},
		{"insertion before all", func(f forger) { f.renumber(1, 1); f.insert(1); f.believed() }, Inserted, 1, Inserted, 1},
		{"reordering", func(f forger) { f.swap(17, 18); f.believed() }, Reordered, 17, Reordered, 17},
		{"reordering over a distance", func(f forger) { f.swap(17, 100); f.believed() }, Reordered, 17, Reordered, 17},
		{"behind the last checkpoint", func(f forger) { f.change(130) }, Altered, 130, Altered, 130},
		{"behind the last checkpoint, not quite made to fit", func(f forger) {
			f.change(130)
			var chain string
			if err := f.db.QueryRow(`SELECT value FROM meta WHERE key = 'chain_sha256'`).Scan(&chain); err != nil {
				f.t.Fatal(err)
			}
			f.believed()
			f.exec(`UPDATE meta SET value = ? WHERE key = 'chain_sha256'`, chain)
		}, Damaged, 121, Altered, 130},
		{"behind the last checkpoint, made to fit", func(f forger) { f.change(130); f.believed() }, "", 0, Altered, 130},
		{"another stream's name", func(f forger) {
			f.exec(`UPDATE meta SET value = '2020-01-01T00:00:00.000000000Z' WHERE key = 'stream_created'`)
			f.believed()
		}, Foreign, 0, Foreign, 0},
		{"a chain", func(f forger) {
			f.exec(`UPDATE meta SET value = ? WHERE key = 'chain_sha256'`, audit.Hash{}.String())
		}, Damaged, 121, Damaged, 0},
		{"a signature", func(f forger) {
			f.exec(`UPDATE events SET body = replace(body, '"through":80', '"through":79') WHERE seq = 81`)
			f.believed()
		}, Altered, 81, Altered, 81},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "forged.db")
			copyFile(t, s.db, path)
			db, err := sql.Open("sqlite3", "file:"+path)
			if err != nil {
				t.Fatal(err)
			}
			c.edit(forger{t, db})
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			r := verifyDatabase(t, path, Options{Keys: []string{s.pub}})
			if c.alone == "" {
				sound(t, r)
			} else {
				named(t, r, c.alone, c.at)
			}
			if r, err = Compare(natstest.Context(t), s.stream(), database(t, path), nil); err != nil {
				t.Fatal(err)
			}
			named(t, r, c.beside, c.where)
		})
	}
}

// A file that was put back to what it was is sound in itself; a checkpoint that
// somebody else kept shows it.
func TestTamperSQLiteRolledBack(t *testing.T) {
	s := newScene(t)
	given := s.given()
	path := filepath.Join(t.TempDir(), "forged.db")
	copyFile(t, s.db, path)
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	f := forger{t, db}
	f.exec(`DELETE FROM events WHERE seq > 100`)
	f.believed()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r := verifyDatabase(t, path, Options{Keys: []string{s.pub}})
	if sound(t, r); r.Covered != 80 {
		t.Errorf("%+v", r)
	}
	named(t, verifyDatabase(t, path, Options{Keys: []string{s.pub}, Given: given}), Missing, 101)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The scene's own key signs nothing for whoever edits a file: what they sign is of
// another key, and named.
func TestTamperSignedAnew(t *testing.T) {
	s := newScene(t)
	path := filepath.Join(t.TempDir(), "forged.db")
	copyFile(t, s.db, path)
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	f := forger{t, db}
	f.change(17)
	f.believed()
	d := database(t, path)
	state, h := audit.Begin(d.Identity()), audit.Hasher{}
	var forged events.AuditCheckpoint
	err = d.Each(context.Background(), 1, 40, func(e Entry) (err error) {
		state.Add(h.Event(e.Event))
		forged, err = audit.Sign(signer(t, 9), d.Identity(), state, 0, nil)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	f.exec(`UPDATE events SET body = ? WHERE seq = 41`, string(body))
	f.believed()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r := verifyDatabase(t, path, Options{Keys: []string{s.pub}})
	named(t, r, Altered, 41) // of which the next checkpoint has a fingerprint
	if !strings.Contains(r.Findings[0].Detail, "events 1 to 40 ") {
		t.Errorf("it does not say that those before may be altered, too: %v", r.Findings[0])
	}
	if len(r.Findings) < 2 || r.Findings[1].Kind != Untrusted || r.Findings[1].Seq != 41 {
		t.Errorf("found %v", r.Findings)
	}
	r, err = Compare(natstest.Context(t), s.stream(), database(t, path), nil)
	if err != nil {
		t.Fatal(err)
	}
	named(t, r, Altered, 17)
}
