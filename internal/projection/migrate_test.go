package projection

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"correx/internal/testenv"
	"correx/pkg/events"
)

// oldest is a database as version 3 of the schema made it, of a log with each type
// of fact in it, and of random ones.
const oldest = "testdata/version3.db.gz"

// unpacked is a copy of an old database.
func unpacked(t *testing.T) string {
	t.Helper()
	if hasFTS == "none" {
		t.Skip("the old databases have full-text search, this program has none")
	}
	f, err := os.Open(oldest)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "old.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// storyOf is the log that a database was made from, with the approval in it that
// whoever checks signatures refused.
func storyOf(t *testing.T, db *DB) *story {
	t.Helper()
	snapshot, err := db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snapshot.Close()
	s := newStory(t)
	err = snapshot.Each(t.Context(), 1, snapshot.At().Seq, func(r Row) error {
		rec := events.Decode(r.Seq, r.Time, r.Subject, events.Header(r.Header), bytes.Clone(r.Data))
		s.recs = append(s.recs, rec)
		if rec.Aggregate.ID == "forged" && rec.Fact != nil && rec.Fact.FactName() == "tool.approved" {
			s.refuse(errors.New("forged"))
		}
		s.last[rec.Aggregate] = rec.Seq
		s.note()
		return r.Fault
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An old database that is opened is what this program makes of the same log: its
// rows, its columns, its indexes and its views; and it goes on as such.
func TestAnOlderDatabaseIsMigrated(t *testing.T) {
	path := unpacked(t)
	if _, err := OpenReadOnly(t.Context(), path); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "start `projector`") {
		t.Errorf("who only reads is told: %v", err)
	}
	before := raw3(t, path)
	old := open(t, path)
	if old.Migrated() != 3 {
		t.Errorf("it says that it had version %d", old.Migrated())
	}
	s := storyOf(t, old)
	fresh := open(t, filepath.Join(t.TempDir(), "fresh.db"))
	apply(t, fresh, s.recs, 100)
	alike(t, old, fresh)
	if after := raw3(t, path); after == before {
		t.Error("the tiers were right before: they prove nothing")
	}
	whole := len(s.recs)
	randomStory(s, rand.New(rand.NewPCG(testenv.Seed(t), 5)), 200)
	apply(t, old, s.recs[whole:], 30)
	apply(t, fresh, s.recs[whole:], 40)
	alike(t, old, fresh)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if again := open(t, path); again.Migrated() != 0 {
		t.Error("it was migrated twice")
	}
}

// raw3 is something that version 3 had otherwise.
func raw3(t *testing.T, path string) (tiers string) {
	t.Helper()
	conn := stranger(t, path)
	defer conn.Close()
	if err := conn.QueryRowContext(t.Context(), `SELECT group_concat(tier) FROM invocations`).Scan(&tiers); err != nil {
		t.Fatal(err)
	}
	return tiers
}

// reasons are why records do not hold: words, which may change from program to
// program.
var reasons = regexp.MustCompile(`"error":"(\\.|[^"\\])*"`)

func alike(t *testing.T, old, fresh *DB) {
	t.Helper()
	got, want := reasons.ReplaceAll(dump(t, old), nil), reasons.ReplaceAll(dump(t, fresh), nil)
	if !bytes.Equal(got, want) {
		t.Errorf("it is another than one that was made anew:\n%s", firstDifference(got, want))
	}
	if got, want := shape(t, old), shape(t, fresh); got != want {
		t.Errorf("its schema is another than that of one that was made anew:\n%s", firstDifference([]byte(got), []byte(want)))
	}
}

// shape is a schema: the columns of every table in their order, and the words of
// every index and view.
func shape(t *testing.T, db *DB) string {
	t.Helper()
	var b strings.Builder
	for _, query := range []string{
		`SELECT t.name, t.type, t.wr, t.strict, x.cid, x.name AS "column", x.type AS declared, x."notnull", x.dflt_value, x.pk, x.hidden
			FROM pragma_table_list t JOIN pragma_table_xinfo(t.name) x WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite%' ORDER BY 1, 5`,
		`SELECT type, name, sql FROM sqlite_schema WHERE type IN ('index', 'view') ORDER BY 1, 2`,
	} {
		err := eachRow(t.Context(), db.read, func(cols []column, row []cell) error {
			item, err := object(cols, row)
			fmt.Fprintf(&b, "%s\n", item)
			return err
		}, query)
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// A step that fails leaves the database as it was, and the next try does it.
func TestAFailedMigrationChangesNothing(t *testing.T) {
	path := unpacked(t)
	before := stateOf(t, path)
	with(t, step{SchemaVersion, func(context.Context, *sql.Tx) error { return errors.New("no such thing") }})
	if _, err := Open(t.Context(), path, testIdentity); err == nil || !strings.Contains(err.Error(), "no such thing; the database is as it was") {
		t.Errorf("it says: %v", err)
	}
	if after := stateOf(t, path); after != before {
		t.Error("the database was changed")
	}
}

// with takes a further step after all others, for as long as the test lasts.
func with(t *testing.T, last step) {
	all := steps
	steps = append(append([]step(nil), steps...), last)
	t.Cleanup(func() { steps = all })
}

// stateOf is all that stands in a database of any version.
func stateOf(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite3", dsn(path, "mode=ro"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := &DB{path: path, read: db}
	return shape(t, d) + string(dump(t, d))
}

// halfMigrated is a program that dies when all is done and nothing committed.
func halfMigrated(path string) error {
	all := steps
	steps = append(append([]step(nil), all...), step{SchemaVersion, func(context.Context, *sql.Tx) error {
		fmt.Print("!")
		select {}
	}})
	_, err := Open(context.Background(), path, testIdentity)
	return err
}

func TestAKilledMigrationChangesNothing(t *testing.T) {
	path := unpacked(t)
	before := stateOf(t, path)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childMigrates+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadByte(); err != nil {
		t.Fatal(errors.Join(err, cmd.Wait()))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed: that is its error
	if after := stateOf(t, path); after != before {
		t.Error("the database was changed")
	}
	if db := open(t, path); db.Migrated() != 3 {
		t.Errorf("the next start finds version %d", db.Migrated())
	}
}

// Each version of the schema has its step.
func TestStepsHaveNoGap(t *testing.T) {
	for i, s := range steps {
		if want := SchemaVersion - len(steps) + 1 + i; s.to != want {
			t.Errorf("step %d leads to version %d, not to %d", i, s.to, want)
		}
	}
	if steps[0].to != 4 {
		t.Errorf("the first step leads to %d; %s is of version 3", steps[0].to, oldest)
	}
}
