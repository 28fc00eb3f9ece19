package projection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

func message(n int) events.Fact {
	if n == 0 {
		return events.SessionStarted{Ref: mainRef("s1"), Task: "count", Mode: events.ModePrompt}
	}
	return events.MessageAdded{Ref: mainRef("s1"), Role: events.RoleUser, Text: fmt.Sprint("message ", n)}
}

// messages are a log of n records.
func messages(t testing.TB, n int) []events.Record {
	s := newStory(t)
	for i := range n {
		s.add(message(i))
	}
	return s.recs
}

func TestFollowsAndGoesOnWhereItWas(t *testing.T) {
	bus := startBus(t)
	log := openLog(t, bus.URL())
	path := filepath.Join(t.TempDir(), "a.db")
	var after uint64
	for round := range 3 {
		p, stop := following(t, log, path)
		if p.Applied() != after {
			t.Fatalf("round %d begins at %d, not at %d", round, p.Applied(), after)
		}
		for range 5 {
			seq, err := log.Append(natstest.Context(t), message(int(after)), after, "")
			if err != nil {
				t.Fatal(err)
			}
			after = seq
		}
		wait(t, p, after)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	same(t, path, log)
}

func TestFollowsAcrossAServersRestart(t *testing.T) {
	bus := startBus(t)
	log := openLog(t, bus.URL())
	path := filepath.Join(t.TempDir(), "a.db")
	p, stop := following(t, log, path)
	js := bus.JetStream(t)
	recs := messages(t, 40)
	publish(t, js, recs[:20])
	wait(t, p, 20)
	bus.Restart()
	publish(t, bus.JetStream(t), recs[20:])
	wait(t, p, 40)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	same(t, path, log)
}

// A batch that nobody waits for may linger; one that somebody waits for not.
func TestWhoWaitsHurriesTheBatch(t *testing.T) {
	bus := startBus(t)
	log := openLog(t, bus.URL())
	db, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Identity(log.Identity()))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p := New(db, log, Batch{Wait: time.Hour}, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	publish(t, bus.JetStream(t), messages(t, 3))
	wait(t, p, 3)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// Wherever log and database do not belong together there is an alarm, its
// message says what to do, and the database stays as it was.
func TestAlarms(t *testing.T) {
	recs := messages(t, 20)
	for _, c := range []struct {
		name  string
		want  error
		at    uint64 // the checkpoint afterwards
		spoil func(t *testing.T, js jetstream.JetStream)
	}{
		{"a stranger's stream", ErrForeignStream, 10, func(t *testing.T, js jetstream.JetStream) {
			remake(t, js)
			publish(t, js, recs)
		}},
		{"a stream made anew", ErrForeignStream, 10, remake},
		{"a record is gone", ErrGap, 12, func(t *testing.T, js jetstream.JetStream) { deleteRecords(t, js, 13) }},
		{"the record at the checkpoint is gone", ErrChangedRecord, 10, func(t *testing.T, js jetstream.JetStream) { deleteRecords(t, js, 10) }},
		{"the record behind the checkpoint is gone", ErrGap, 10, func(t *testing.T, js jetstream.JetStream) { deleteRecords(t, js, 11, 12) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bus := natstest.Server(t)
			js := bus.JetStream(t)
			cfg := natstest.StreamConfig("EVENTS", "evt.>", 1)
			cfg.DenyDelete = false // as whoever damages a store sees it
			natstest.Stream(t, js, cfg)
			publish(t, js, recs[:10])
			path := project10(t, bus)
			publish(t, js, recs[10:])
			c.spoil(t, js)
			log := openLog(t, bus.URL())
			alarmed(t, runOnce(t, path, log), c.want)
			db, err := OpenReadOnly(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if at, err := db.Checkpoint(t.Context()); err != nil || at.Seq != c.at {
				t.Errorf("the database is at %d, not %d: %v", at.Seq, c.at, err)
			}
		})
	}
}

// runOnce runs a projector until it ends by itself.
func runOnce(t *testing.T, path string, log Log) error {
	t.Helper()
	db, err := Open(t.Context(), path, Identity(log.(*eventlog.Log).Identity()))
	if err != nil {
		return err
	}
	defer db.Close()
	return New(db, log, Batch{}, quiet).Run(natstest.Context(t))
}

// deleteRecords deletes records, which a stream of the product denies.
func deleteRecords(t *testing.T, js jetstream.JetStream, seqs ...uint64) {
	t.Helper()
	stream, err := js.Stream(natstest.Context(t), "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range seqs {
		if err := stream.DeleteMsg(natstest.Context(t), seq); err != nil {
			t.Fatal(err)
		}
	}
}

// project10 makes a database of ten records and returns its path.
func project10(t *testing.T, bus *natstest.Bus) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	p, stop := following(t, openLog(t, bus.URL()), path)
	wait(t, p, 10)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	return path
}

func remake(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	if err := js.DeleteStream(natstest.Context(t), "EVENTS"); err != nil {
		t.Fatal(err)
	}
	natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
}

func alarmed(t *testing.T, err, want error) {
	t.Helper()
	var alarm *AlarmError
	if !errors.As(err, &alarm) || !errors.Is(err, want) {
		t.Fatalf("got %v, want the alarm: %v", err, want)
	}
	if alarm.Detail == "" || alarm.Remedy == "" {
		t.Errorf("the alarm says too little: %v", err)
	}
}

// A spoiltLog answers as a store would that lost its end and used the sequences
// again, which a sound server cannot be made to do.
type spoiltLog struct {
	Log
	recs []events.Record
	last uint64
}

func (l spoiltLog) Last(context.Context) (uint64, error) { return l.last, nil }

func (l spoiltLog) ReadFilter(_ context.Context, _ string, from, through uint64) ([]events.Record, error) {
	var out []events.Record
	for _, r := range l.recs {
		if r.Seq >= from && r.Seq <= through {
			out = append(out, r)
		}
	}
	return out, nil
}

func (l spoiltLog) Follow(_ context.Context, _ string, from uint64, fn func(events.Record) error) error {
	for _, r := range l.recs {
		if r.Seq < from {
			continue
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

func TestAlarmsOfADamagedStore(t *testing.T) {
	recs := messages(t, 20)
	other := append([]events.Record(nil), recs...)
	other[9].Data = []byte(`{"session":"s1","id":"main","role":"user","text":"another"}`)
	later := append([]events.Record(nil), recs...)
	later[9].Time = later[9].Time.Add(time.Nanosecond)
	for _, c := range []struct {
		name string
		log  spoiltLog
		want error
	}{
		{"it has become shorter", spoiltLog{recs: recs[:9], last: 9}, ErrShrunkenStream},
		{"it is empty", spoiltLog{}, ErrShrunkenStream},
		{"it used a sequence again", spoiltLog{recs: other, last: 20}, ErrChangedRecord},
		{"the same was written at another time", spoiltLog{recs: later, last: 20}, ErrChangedRecord},
		{"the record at the checkpoint is gone", spoiltLog{recs: append(append([]events.Record(nil), recs[:9]...), recs[10:]...), last: 20}, ErrChangedRecord},
		{"a record behind it is gone", spoiltLog{recs: append(append([]events.Record(nil), recs[:12]...), recs[13:]...), last: 20}, ErrGap},
		{"nothing is wrong", spoiltLog{recs: recs, last: 20}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			db := open(t, filepath.Join(t.TempDir(), "a.db"))
			apply(t, db, recs[:10], 3)
			err := New(db, c.log, Batch{}, quiet).Run(t.Context())
			if c.want == nil {
				if err != nil {
					t.Fatal(err)
				}
				if at, err := db.Checkpoint(t.Context()); err != nil || at.Seq != 20 {
					t.Fatalf("it is at %d: %v", at.Seq, err)
				}
				return
			}
			alarmed(t, err, c.want)
			at, err := db.Checkpoint(t.Context())
			if want := uint64(10); c.want == ErrGap {
				want = 12 // what came before the gap is kept
				if err != nil || at.Seq > want {
					t.Fatalf("the checkpoint is %d: %v", at.Seq, err)
				}
			} else if err != nil || at.Seq != want {
				t.Fatalf("the checkpoint is %d: %v", at.Seq, err)
			}
		})
	}
}

func TestAnotherSchemaIsAnAlarm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path)
	if _, err := db.write.ExecContext(t.Context(), `UPDATE meta SET value = 'version 0' WHERE key = 'schema'`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path, testIdentity)
	alarmed(t, err, ErrSchema)
	_, err = OpenReadOnly(t.Context(), path)
	alarmed(t, err, ErrSchema)
}

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
