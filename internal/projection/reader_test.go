package projection

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
)

// stranger opens the file as any SQLite tool does.
func stranger(t *testing.T, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func count(t *testing.T, conn *sql.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRowContext(t.Context(), `SELECT count(*) FROM events`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Readers neither wait for the writer nor make it wait, and see whole batches.
func TestAnybodyMayReadMeanwhile(t *testing.T) {
	recs := messages(t, 30)
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path)
	apply(t, db, recs[:10], 10)
	reader := stranger(t, path)
	w := writer(t, db)
	for _, r := range recs[10:20] {
		if err := w.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, reader); n != 10 {
		t.Errorf("in the middle of a batch a reader sees %d records", n)
	}
	if _, err := reader.ExecContext(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, reader); n != 10 {
		t.Errorf("a reader's snapshot has %d records", n)
	}
	for _, r := range recs[20:] {
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := w.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, reader); n != 10 {
		t.Errorf("a reader's snapshot has moved to %d records", n)
	}
	if _, err := reader.ExecContext(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if n := count(t, reader); n != 30 {
		t.Errorf("afterwards a reader sees %d records", n)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// The queries' side of a database cannot write.
func TestQueriesCannotWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path)
	apply(t, db, messages(t, 3), 3)
	only, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer only.Close()
	for _, pool := range []*sql.DB{db.read, only.read} {
		if _, err := pool.ExecContext(context.Background(), `DELETE FROM events`); err == nil {
			t.Error("it deleted the events")
		}
	}
}
