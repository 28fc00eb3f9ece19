package eventlog_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/events"
)

// chained appends some facts of one invocation and returns their sequences.
func chained(t *testing.T, l *eventlog.Log, id string) (events.Aggregate, []uint64) {
	t.Helper()
	ref := events.Ref{Session: "s", ID: id}
	var seqs []uint64
	var after uint64
	for _, f := range []events.Fact{
		events.ToolInvocationRequested{Ref: ref, Token: "echo"},
		events.ToolPreviewed{Ref: ref, Valid: true},
		events.ApprovalRequested{Ref: ref, Token: "echo"},
		events.ApprovalGranted{Ref: ref, Token: "echo"},
	} {
		seq, err := l.Append(natstest.Context(t), f, after, "")
		if err != nil {
			t.Fatal(err)
		}
		after, seqs = seq, append(seqs, seq)
	}
	return events.AggregateOf(events.ApprovalGranted{Ref: ref}), seqs
}

func sequences(recs []events.Record) []uint64 {
	var seqs []uint64
	for _, r := range recs {
		seqs = append(seqs, r.Seq)
	}
	return seqs
}

func equal(a, b []uint64) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return true
}

func TestReadThroughGivesWhatReadGives(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Streams(t, js, 1)
	ctx := natstest.Context(t)
	l, err := eventlog.Open(ctx, js, eventlog.Options{Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	chained(t, l, "before")
	a, seqs := chained(t, l, "it")
	chained(t, l, "behind")
	for name, after := range map[string]uint64{"told": seqs[2], "not told": 0, "told wrong": seqs[0], "told nonsense": 9999} {
		recs, err := l.ReadThrough(ctx, a, seqs[3], after)
		if err != nil || !equal(sequences(recs), seqs) {
			t.Errorf("%s: %v, %v; want %v", name, sequences(recs), err, seqs)
		}
	}
	if recs, err := l.ReadThrough(ctx, a, seqs[1], seqs[0]); err != nil || !equal(sequences(recs), seqs[:2]) {
		t.Errorf("up to the second: %v, %v", sequences(recs), err)
	}
}

// A record that was published with no condition says nothing of what it stands
// behind: nothing may be left out on its word.
func TestReadThroughDoesNotBelieveWhatTheServerDidNotCheck(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Streams(t, js, 1)
	ctx := natstest.Context(t)
	l, err := eventlog.Open(ctx, js, eventlog.Options{Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	a, seqs := chained(t, l, "it")
	for name, h := range map[string]nats.Header{
		"no condition":      {},
		"another filter":    {"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {"evt.s.tool.other.>"}},
		"a lower-case name": {"nats-expected-last-subject-sequence": {"1"}},
	} {
		ack, err := js.PublishMsg(ctx, &nats.Msg{Subject: "evt.s.tool.it.previewed", Data: []byte("{}"), Header: h})
		if err != nil {
			t.Logf("%s: the server refuses it: %v", name, err)
			continue
		}
		seqs = append(seqs, ack.Sequence)
		recs, err := l.ReadThrough(ctx, a, ack.Sequence, seqs[0])
		if err != nil || !equal(sequences(recs), seqs) {
			t.Errorf("%s: %v, %v; want %v", name, sequences(recs), err, seqs)
		}
	}
}

func TestNotAfterBoundsTheClockThatStampsRecords(t *testing.T) {
	b := natstest.Server(t)
	js := b.JetStream(t)
	natstest.Streams(t, js, 1)
	ctx := natstest.Context(t)
	l, err := eventlog.Open(ctx, js, eventlog.Options{Source: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		a, _ := chained(t, l, string(rune('a'+n%26))+string(rune('a'+n/26)))
		bound, err := l.NotAfter(ctx)
		if err != nil {
			t.Fatal(err)
		}
		recs, err := l.Read(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		last := recs[len(recs)-1].Time
		if last.After(bound) {
			t.Fatalf("a record is stamped %s, the bound was %s", last, bound)
		}
		if bound.Sub(last) > time.Minute {
			t.Fatalf("the bound is %s off", bound.Sub(last))
		}
	}
}
