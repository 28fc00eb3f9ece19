package projection

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

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
