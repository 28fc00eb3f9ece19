package projection

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

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

// A database of a newer program, one that is too old and one of no known schema are
// left as they are.
func TestAnotherSchemaIsAnAlarm(t *testing.T) {
	for schema, says := range map[string]string{
		"version 0":                           "projector rebuild",
		"version 2, search " + hasFTS:         "projector rebuild",
		"version 3, search another":           "projector rebuild",
		"version 999, search " + hasFTS:       "which a newer program wrote",
		"version 999, search somehow, by sea": "which a newer program wrote",
	} {
		path := filepath.Join(t.TempDir(), "a.db")
		db := open(t, path)
		if _, err := db.setup.ExecContext(t.Context(), `UPDATE meta SET value = ? WHERE key = 'schema'`, schema); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		before := read(t, path)
		for range 2 {
			_, err := Open(t.Context(), path, testIdentity)
			alarmed(t, err, ErrSchema)
			if err != nil && !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v; it does not say %q", schema, err, says)
			}
			_, err = OpenReadOnly(t.Context(), path)
			alarmed(t, err, ErrSchema)
		}
		if !bytes.Equal(read(t, path), before) {
			t.Errorf("%s: the file was changed", schema)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestADamagedFileIsAnAlarm(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database. "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), path, testIdentity)
	alarmed(t, err, ErrDamaged)
	_, err = OpenReadOnly(t.Context(), path)
	alarmed(t, err, ErrDamaged)
}
