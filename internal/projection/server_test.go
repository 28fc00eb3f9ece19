package projection

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

// quiet is a logger that says nothing.
var quiet = slog.New(slog.DiscardHandler)

// openLog opens EVENTS over a connection of its own.
func openLog(t testing.TB, url string) *eventlog.Log {
	t.Helper()
	nc, err := nats.Connect(url, nats.ReconnectBufSize(-1), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	log, err := eventlog.Open(natstest.Context(t), natstest.JetStream(t, nc), eventlog.Options{Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// startBus starts a server with the product's streams.
func startBus(t testing.TB) *natstest.Bus {
	t.Helper()
	bus := natstest.Server(t)
	natstest.Streams(t, bus.JetStream(t), 1)
	return bus
}

// publish puts a story's records from the first on into the stream, which
// numbers them as the story does.
func publish(t testing.TB, js jetstream.JetStream, recs []events.Record) {
	t.Helper()
	for _, r := range recs {
		ack, err := js.PublishMsg(natstest.Context(t), &nats.Msg{Subject: r.Subject, Header: nats.Header(r.Header), Data: r.Data})
		if err != nil {
			t.Fatalf("publish %s: %v", r.Subject, err)
		}
		if ack.Sequence != r.Seq {
			t.Fatalf("record %d got sequence %d", r.Seq, ack.Sequence)
		}
	}
}

// wellFormed are the records of a story that a server takes.
func wellFormed(recs []events.Record) []events.Record {
	var out []events.Record
	for _, r := range recs {
		if r.Header.Get(events.HeaderNatsStream) != "" {
			r.Header = events.Header{events.HeaderID: {"x"}}
		}
		r.Seq = uint64(len(out) + 1)
		out = append(out, r)
	}
	return out
}

// following runs a projector until stop is called, which returns Run's error.
func following(t testing.TB, log *eventlog.Log, path string) (p *Projector, stop func() error) {
	t.Helper()
	lock, err := Acquire(path)
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), path, Identity(log.Identity()))
	if err != nil {
		t.Fatal(err)
	}
	p = New(db, log, Batch{}, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	var stopped bool
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		err := <-ended
		if closed := db.Close(); err == nil {
			err = closed
		}
		lock.Release()
		return err
	}
	t.Cleanup(func() { stop() })
	return p, stop
}

func wait(t testing.TB, p *Projector, seq uint64) {
	t.Helper()
	if err := p.Wait(natstest.Context(t), seq); err != nil {
		t.Fatalf("wait for sequence %d: %v; applied %d", seq, err, p.Applied())
	}
}

// rebuilt is the dump of a fresh projection of the log.
func rebuilt(t testing.TB, log *eventlog.Log) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fresh.db")
	if err := Rebuild(natstest.Context(t), path, Identity(log.Identity()), log, func(uint64, uint64) {}); err != nil {
		t.Fatal(err)
	}
	return dumpOf(t, path)
}

func dumpOf(t testing.TB, path string) []byte {
	t.Helper()
	db, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	return dump(t, db)
}

// same fails the test unless the database at path is that of the whole log.
func same(t testing.TB, path string, log *eventlog.Log) {
	t.Helper()
	if got, want := dumpOf(t, path), rebuilt(t, log); string(got) != string(want) {
		t.Fatalf("the database is not that of the log:\n%s", firstDifference(got, want))
	}
	last, err := log.Last(natstest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	db, err := OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var count, least, most uint64
	if err := db.read.QueryRow(`SELECT count(*), min(seq), max(seq) FROM events`).Scan(&count, &least, &most); err != nil {
		t.Fatal(err)
	}
	if count != last || least != 1 || most != last {
		t.Fatalf("the database has %d events from %d to %d, the stream %d", count, least, most, last)
	}
}
