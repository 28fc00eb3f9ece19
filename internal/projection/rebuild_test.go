package projection

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

func TestRebuildReplacesWhatIsThere(t *testing.T) {
	bus := startBus(t)
	js := bus.JetStream(t)
	publish(t, js, messages(t, 10))
	path := project10(t, bus)
	want := dumpOf(t, path)
	log := openLog(t, bus.URL())
	for name, spoil := range map[string]func() error{
		"a foreign database": func() error {
			db, err := Open(t.Context(), path+".other", testIdentity)
			if err != nil {
				return err
			}
			apply(t, db, messages(t, 3), 1)
			return errors.Join(db.Close(), os.Rename(path+".other", path))
		},
		"what is no database": func() error {
			return os.WriteFile(path, []byte("not a database, and long enough to be read as one"), 0o600)
		},
		"nothing":          func() error { return os.Remove(path) },
		"a broken attempt": func() error { return os.WriteFile(path+".rebuild", []byte("half of it"), 0o600) },
		"a stale WAL":      func() error { return os.WriteFile(path+"-wal", []byte("of another file"), 0o600) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		var reported uint64
		err := Rebuild(natstest.Context(t), path, Identity(log.Identity()), log, func(done, last uint64) { reported = done })
		if err != nil {
			t.Fatalf("over %s: %v", name, err)
		}
		if got := dumpOf(t, path); string(got) != string(want) {
			t.Errorf("over %s it comes out another:\n%s", name, firstDifference(got, want))
		}
		if reported != 10 {
			t.Errorf("over %s it reported %d of 10 records", name, reported)
		}
	}
	p, stop := following(t, log, path)
	if p.Applied() != 10 {
		t.Errorf("a projector goes on at %d", p.Applied())
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestRebuildLeavesARunningProjectorAlone(t *testing.T) {
	bus := startBus(t)
	publish(t, bus.JetStream(t), messages(t, 10))
	log := openLog(t, bus.URL())
	path := filepath.Join(t.TempDir(), "a.db")
	p, stop := following(t, log, path)
	wait(t, p, 10)
	err := Rebuild(natstest.Context(t), path, Identity(log.Identity()), log, func(uint64, uint64) {})
	if !errors.Is(err, ErrLocked) {
		t.Fatalf("got %v, want %v", err, ErrLocked)
	}
	if _, err := Acquire(path); !errors.Is(err, ErrLocked) {
		t.Fatalf("a second projector: %v, want %v", err, ErrLocked)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	same(t, path, log)
}

// An interrupted rebuild leaves the old file as it was.
func TestInterruptedRebuildChangesNothing(t *testing.T) {
	bus := startBus(t)
	publish(t, bus.JetStream(t), messages(t, 10))
	path := project10(t, bus)
	want := dumpOf(t, path)
	log := openLog(t, bus.URL())
	ctx, cancel := context.WithCancel(t.Context())
	err := Rebuild(ctx, path, Identity(log.Identity()), interruptedLog{log, cancel}, func(uint64, uint64) {})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	if got := dumpOf(t, path); string(got) != string(want) {
		t.Error("the old file has changed")
	}
	if _, err := os.Stat(path + ".rebuild"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the new file is still there: %v", err)
	}
}

type interruptedLog struct {
	*eventlog.Log
	interrupt func()
}

func (l interruptedLog) Follow(ctx context.Context, filter string, from uint64, fn func(events.Record) error) error {
	return l.Log.Follow(ctx, filter, from, func(r events.Record) error {
		if r.Seq == 5 {
			l.interrupt()
		}
		return fn(r)
	})
}

// A rebuild is made without a journal. What comes of it is whole, and has one from
// then on, so that it can be read while a projector writes it.
func TestARebuiltDatabaseHasAJournal(t *testing.T) {
	bus := startBus(t)
	publish(t, bus.JetStream(t), messages(t, 5000))
	log := openLog(t, bus.URL())
	path := filepath.Join(t.TempDir(), "a.db")
	if err := Rebuild(t.Context(), path, Identity(log.Identity()), log, func(uint64, uint64) {}); err != nil {
		t.Fatal(err)
	}
	conn := stranger(t, path)
	for query, want := range map[string]string{"PRAGMA journal_mode": "wal", "PRAGMA integrity_check": "ok"} {
		var got string
		if err := conn.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q: %v", query, got, err)
		}
	}
	if n := count(t, conn); n != 5000 {
		t.Errorf("it has %d records", n)
	}
}
