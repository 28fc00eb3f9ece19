package eventlog_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

// A reader on another server sees at once what was acknowledged to a writer.
func TestReadIsNeverStale(t *testing.T) {
	onEach(t, func(t *testing.T, b *natstest.Bus, js jetstream.JetStream) {
		writer := open(t, natstest.JetStream(t, b.ConnectNode(t, 0)))
		reader := open(t, natstest.JetStream(t, b.ConnectNode(t, b.Size()-1)))
		last := uint64(0)
		for i := range 300 {
			last = appendTo(t, writer, "s", fmt.Sprint(i), last)
			recs, err := reader.Since(natstest.Context(t), sessionOf("s").Filter(), last)
			if err != nil || len(recs) != 1 || recs[0].Seq != last {
				t.Fatalf("round %d: read %v (%v), want sequence %d", i, recs, err, last)
			}
			if end, err := reader.Last(natstest.Context(t)); err != nil || end != last {
				t.Fatalf("round %d: last is %d (%v), want %d", i, end, err, last)
			}
		}
	})
}

func TestReadFilter(t *testing.T) {
	l := open(t, streams(t))
	a, b := chain(t, l, "a", 5), chain(t, l, "b", 5)
	everything := append(append([]uint64{}, a...), b...)
	for _, c := range []struct {
		filter        string
		from, through uint64
		want          []uint64
	}{
		{"evt.>", 0, 0, everything},
		{"evt.a.>", 1, 0, a},
		{"evt.*.session.main.message", 1, 0, everything},
		{"evt.a.>", a[1], a[3], a[1:4]},
		{"evt.b.>", 1, a[4], nil},
		{"evt.>", b[4], 0, b[4:]},
		{"evt.>", b[4] + 1, 0, nil},
		{"evt.>", 3, 3, everything[2:3]},
		{"evt.aa.>", 1, 0, nil},
		{"evt.a", 1, 0, nil},
	} {
		recs, err := l.ReadFilter(natstest.Context(t), c.filter, c.from, c.through)
		var got []uint64
		for _, r := range recs {
			got = append(got, r.Seq)
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s from %d through %d: %v (%v), want %v", c.filter, c.from, c.through, got, err, c.want)
		}
	}
	if _, err := l.Read(natstest.Context(t), events.Aggregate{Session: "*", Kind: events.KindSession, ID: "main"}); err == nil {
		t.Error("read an aggregate with a wildcard for its session")
	}
}

// What a reader of the JetStream API has the server store for it carries
// Nats-Stream, holds nothing, and still counts as the aggregate's last record.
func TestForgedRecordDoesNotHold(t *testing.T) {
	js := streams(t)
	nc := js.Conn()
	l := open(t, js)
	f := message("victim", "let me in")
	_, h, body, err := events.Encode(f, events.Source{Name: "kernel"}, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	mine := publish(t, js, "evt.mine.session.main.message", h, body)
	target := "evt.victim.session.main.message"
	if err := nc.PublishRequest("$JS.API.DIRECT.GET.EVENTS", target, fmt.Appendf(nil, `{"seq":%d}`, mine)); err != nil {
		t.Fatal(err)
	}
	forged := follow(t, l, "evt.victim.>", 1).next(t)
	for _, r := range append(read(t, l, "victim"), forged) {
		if !errors.Is(r.Err, events.ErrForged) || r.Fact != nil {
			t.Errorf("sequence %d: %v, %v; want %v and no fact", r.Seq, r.Err, r.Fact, events.ErrForged)
		}
	}
	if _, err := l.Append(natstest.Context(t), message("victim", "x"), 0, ""); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("append before the forged record: %v, want a conflict", err)
	}
	appendTo(t, l, "victim", "x", forged.Seq)
}

// Headers that no client can parse would hide the mark of forgery from those
// who read by a consumer.
func TestUnreadableHeadersDoNotHold(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
	l := open(t, js)
	_, _, body, err := events.Encode(message("victim", "x"), events.Source{}, 0, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	hpub(t, b.NodeURL(0), "evt.mine.session.main.message", "NATS/1.0\r\nno header at all\r\n\r\n", string(body))
	if err := js.Conn().PublishRequest("$JS.API.DIRECT.GET.EVENTS", "evt.victim.session.main.message", []byte(`{"seq":1}`)); err != nil {
		t.Fatal(err)
	}
	followed := follow(t, l, "evt.victim.>", 1).next(t)
	if followed.Header.Get(events.HeaderNatsStream) != "" {
		t.Fatal("the client read the headers after all: this test shows nothing")
	}
	for _, r := range append(read(t, l, "victim"), followed) {
		if r.Err == nil || r.Fact != nil {
			t.Errorf("sequence %d holds: %+v", r.Seq, r.Fact)
		}
	}
}

// hpub publishes as a client that checks nothing.
func hpub(t *testing.T, url, subject, header, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewScanner(conn)
	in.Scan() // INFO
	fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true}\r\nHPUB %s %d %d\r\n%s%s\r\nPING\r\n",
		subject, len(header), len(header)+len(body), header, body)
	for in.Scan() {
		if line := in.Text(); line == "PONG" {
			return
		} else if strings.HasPrefix(line, "-ERR") {
			t.Fatal(line)
		}
	}
	t.Fatalf("connection ended: %v", in.Err())
}

func TestVerifyTakesTheFact(t *testing.T) {
	refused := errors.New("not signed")
	js := streams(t)
	l := open(t, js, func(o *eventlog.Options) {
		o.Verify = func(r events.Record) error {
			if r.Fact == nil {
				t.Error("asked about a record that does not hold")
			}
			if r.Fact.(events.MessageAdded).Text == "bad" {
				return refused
			}
			return nil
		}
	})
	last := appendTo(t, l, "s", "good", 0)
	appendTo(t, l, "s", "bad", last)
	publish(t, js, "evt.s.session.main.message", nil, []byte("{}"))
	f := follow(t, l, "evt.s.>", 1)
	var followed []events.Record
	for range 3 {
		followed = append(followed, f.next(t))
	}
	for _, recs := range [][]events.Record{read(t, l, "s"), followed} {
		if recs[0].Err != nil || recs[0].Fact == nil {
			t.Errorf("a good record: %+v", recs[0])
		}
		if !errors.Is(recs[1].Err, refused) || recs[1].Fact != nil {
			t.Errorf("a bad record: %+v", recs[1])
		}
		if recs[2].Err == nil {
			t.Errorf("a record without an envelope: %+v", recs[2])
		}
	}
}

func TestReplay(t *testing.T) {
	l := open(t, streams(t))
	count := func(n int, r events.Record) int { return n + len(r.Fact.(events.MessageAdded).Text) }
	if n, last, err := eventlog.Replay(natstest.Context(t), l, "evt.>", 7, count); n != 7 || last != 0 || err != nil {
		t.Errorf("empty log: %d, %d, %v", n, last, err)
	}
	a := chain(t, l, "a", 12) // 0 to 11: 14 digits
	chain(t, l, "b", 3)
	if n, last, err := eventlog.Replay(natstest.Context(t), l, "evt.a.>", 0, count); n != 14 || last != a[11] || err != nil {
		t.Errorf("session a: %d, %d, %v; want 14, %d", n, last, err, a[11])
	}
}

// Reading all is no place to step over what is missing either.
func TestReplayOfAllNoticesAGap(t *testing.T) {
	for _, c := range []struct{ erased, next uint64 }{{1, 2}, {50, 51}, {100, 0}} {
		js := erasable(t)
		l := open(t, js)
		chain(t, l, "s", 100)
		s, err := js.Stream(natstest.Context(t), "EVENTS")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteMsg(natstest.Context(t), c.erased); err != nil {
			t.Fatal(err)
		}
		next := uint64(1)
		_, _, err = eventlog.Replay(natstest.Context(t), l, "evt.>", 0, func(_ int, r events.Record) int {
			if r.Seq != next {
				t.Fatalf("sequence %d came, %d was due", r.Seq, next)
			}
			next++
			return 0
		})
		var gap *eventlog.GapError
		if !errors.As(err, &gap) || gap.Want != c.erased || gap.Got != c.next {
			t.Errorf("%v, want that %d is missing before %d", err, c.erased, c.next)
		}
	}
}

// The log is made anew under the same name.
func TestForeignStreamIsNoticed(t *testing.T) {
	js := streams(t)
	l := open(t, js, func(o *eventlog.Options) { o.Watch = 20e6 })
	appendTo(t, l, "s", "x", 0)
	f := follow(t, l, "evt.>", 1)
	f.next(t)
	if err := js.DeleteStream(natstest.Context(t), "EVENTS"); err != nil {
		t.Fatal(err)
	}
	natstest.Stream(t, js, natstest.StreamConfig("EVENTS", "evt.>", 1))
	var foreign *eventlog.ForeignStreamError
	if _, err := l.Last(natstest.Context(t)); !errors.As(err, &foreign) || !foreign.Want.Equal(l.Identity().Created) {
		t.Errorf("last: %v, want a foreign stream", err)
	}
	if err := f.end(t); !errors.As(err, &foreign) && !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("follow: %v, want a foreign stream", err)
	}
}
