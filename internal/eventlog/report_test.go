package eventlog_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

// Whoever reports gets behind whatever is there, however many do.
func TestReportsOfManyAllStand(t *testing.T) {
	onEach(t, func(t *testing.T, b *natstest.Bus, js jetstream.JetStream) {
		l := open(t, js)
		appendTo(t, l, "s", "first", 0)
		const writers = 8
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				if _, err := l.Report(natstest.Context(t), message("s", "more")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if recs := read(t, l, "s"); len(recs) != writers+1 {
			t.Errorf("%d records, want %d", len(recs), writers+1)
		}
	})
}

func TestReportOutlivesItsServer(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Streams(t, js, 1)
	l := open(t, js)
	b.Stop(0)
	reported := make(chan error, 1)
	go func() {
		_, err := l.Report(natstest.Context(t), message("s", "x"))
		reported <- err
	}()
	b.Start(0)
	if err := <-reported; err != nil {
		t.Error(err)
	}
	if recs := read(t, l, "s"); len(recs) == 0 {
		t.Error("nothing is there")
	}
}

func TestReportGivesUpWhatCannotBe(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Streams(t, js, 1)
	l := open(t, js)
	if _, err := l.Report(natstest.Context(t), message("s", strings.Repeat("x", 2<<20))); !errors.Is(err, events.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if _, err := l.Report(natstest.Context(t), message("no token", "x")); err == nil || errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("no token: %v", err)
	}
	b.Stop(0)
	ctx, cancel := context.WithCancel(natstest.Context(t))
	cancel()
	if _, err := l.Report(ctx, message("s", "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}
