package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

// BenchmarkAppend is writers on one connection, each behind its own last record
// of about 1 KB, every write synced; "publish" is the same with no rules, to
// hold Append against.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("append/writers=%d", writers), func(b *testing.B) {
			l := open(b, streams(b))
			text := strings.Repeat("x", 900)
			race(b, writers, func(w, i int, last uint64) (uint64, error) {
				return l.Append(b.Context(), message(events.SessionID(fmt.Sprintf("w%d", w)), text), last, "")
			})
		})
		b.Run(fmt.Sprintf("publish/writers=%d", writers), func(b *testing.B) {
			js := streams(b)
			body := []byte(strings.Repeat("x", 1000))
			race(b, writers, func(w, i int, _ uint64) (uint64, error) {
				ack, err := js.Publish(b.Context(), fmt.Sprintf("evt.w%d.session.main.message", w), body)
				if err != nil {
					return 0, err
				}
				return ack.Sequence, nil
			})
		})
	}
}

func race(b *testing.B, writers int, one func(w, i int, last uint64) (uint64, error)) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ResetTimer()
	for w := range writers {
		all.Go(func() {
			last := uint64(0)
			for i := 0; left.Add(-1) >= 0; i++ {
				seq, err := one(w, i, last)
				if err != nil {
					b.Error(err)
					return
				}
				last = seq
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// filled makes a log of n records in sessions of 20.
func filled(b *testing.B, n int) *eventlog.Log {
	js := natstest.Server(b, func(o *server.Options) { o.SyncAlways = false }).JetStream(b)
	natstest.Stream(b, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
	body := []byte(`{"session":"s","id":"main","role":"user","text":"` + strings.Repeat("x", 900) + `"}`)
	h := events.Header{events.HeaderID: {"x"}}
	for i := range n {
		m := &nats.Msg{Subject: fmt.Sprintf("evt.s%d.session.main.message", i/20), Header: nats.Header(h), Data: body}
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(natstest.Patience)); err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	return open(b, js)
}

func BenchmarkReadAggregate(b *testing.B) {
	const n = 200000
	l := filled(b, n)
	b.ResetTimer()
	for i := range b.N {
		recs, err := l.Read(b.Context(), sessionOf(events.SessionID(fmt.Sprintf("s%d", i*7919%(n/20)))))
		if err != nil || len(recs) != 20 {
			b.Fatal(len(recs), err)
		}
	}
	b.ReportMetric(20*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

var errEnough = errors.New("enough")

func BenchmarkFollow(b *testing.B) {
	const n = 20000
	l := filled(b, n)
	b.ResetTimer()
	for range b.N {
		seen := 0
		err := l.Follow(b.Context(), "evt.>", 1, func(events.Record) error {
			if seen++; seen == n {
				return errEnough
			}
			return nil
		})
		if seen != n {
			b.Fatal(seen, err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkReplay(b *testing.B) {
	const n = 20000
	l := filled(b, n)
	b.ResetTimer()
	for range b.N {
		got, _, err := eventlog.Replay(b.Context(), l, "evt.>", 0, func(n int, _ events.Record) int { return n + 1 })
		if got != n || err != nil {
			b.Fatal(got, err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkLatency is from before an append to its record in a follower's hands.
func BenchmarkLatency(b *testing.B) {
	l := open(b, streams(b))
	got := make(chan uint64, 1)
	ended := make(chan struct{})
	ctx, stop := context.WithCancel(b.Context())
	go func() {
		defer close(ended)
		_ = l.Follow(ctx, "evt.>", 1, func(r events.Record) error { got <- r.Seq; return nil })
	}()
	last := appendTo(b, l, "s", "x", 0)
	<-got
	b.ResetTimer()
	for range b.N {
		last = appendTo(b, l, "s", "x", last)
		<-got
	}
	b.StopTimer()
	stop()
	<-ended
}
