package projection

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"correx/pkg/events"
)

var update = flag.Bool("update", false, "write testdata anew")

// open makes or opens a database of the test's stream.
func open(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, testIdentity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func writer(t testing.TB, db *DB) *Writer {
	t.Helper()
	w, err := db.Writer()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// apply projects records in batches of the given size.
func apply(t testing.TB, db *DB, recs []events.Record, batch int) {
	t.Helper()
	w := writer(t, db)
	for i, r := range recs {
		if err := w.Apply(r); err != nil {
			t.Fatal(err)
		}
		if (i+1)%batch == 0 {
			if err := w.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func dump(t testing.TB, db *DB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := db.Dump(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestEveryFactHasItsPlace(t *testing.T) {
	s := newStory(t)
	everything(s)
	seen := map[events.FactName]bool{}
	for _, r := range s.recs {
		if r.Fact != nil {
			seen[r.Fact.FactName()] = true
		}
	}
	for _, f := range events.FactTypes() {
		if !seen[f.Name] {
			t.Errorf("the story has no %s", f.Name)
		}
	}
	db := open(t, filepath.Join(t.TempDir(), "a.db"))
	apply(t, db, s.recs, 500)
	golden := filepath.Join("testdata", "everything."+hasFTS+".golden")
	got := dump(t, db)
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the dump differs from %s; run with -update and look at the difference\n%s", golden, firstDifference(got, want))
	}
}

// firstDifference shows the first line in which two dumps differ.
func firstDifference(got, want []byte) string {
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(g), len(w)) {
		if !bytes.Equal(g[i], w[i]) {
			return "got  " + string(g[i]) + "\nwant " + string(w[i])
		}
	}
	return "one is longer"
}

// However the log is cut into batches, and wherever the database is closed and
// opened again, so that nothing is remembered, it comes out the same.
func TestBatchesAndRestartsLeaveNoTrace(t *testing.T) {
	s := newStory(t)
	everything(s)
	whole := open(t, filepath.Join(t.TempDir(), "whole.db"))
	apply(t, whole, s.recs, len(s.recs))
	want := dump(t, whole)

	path := filepath.Join(t.TempDir(), "pieces.db")
	for i := range s.recs {
		db := open(t, path)
		apply(t, db, s.recs[i:i+1], 1)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := dump(t, open(t, path)); !bytes.Equal(got, want) {
		t.Errorf("record by record it comes out another:\n%s", firstDifference(got, want))
	}
}
