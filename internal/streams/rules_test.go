package streams

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/natstest"
)

// A trial is a change to one field of a stream on a real server. Name and
// subject of the streams are the case's own.
type trial struct {
	field    string
	verdict  Verdict
	from, to func(*jetstream.StreamConfig)
	// lost shows what the change did. Nil for a change that the server refuses;
	// one that it takes without any effect is refused by the plan.
	lost func(t *testing.T, b bench)
}

// A bench is a stream that a change was made to. Before, four messages were
// published to it, under <name>.1, .2, .3 and .1.
type bench struct {
	js   jetstream.JetStream
	name string
}

func (b bench) info(t *testing.T) *jetstream.StreamInfo {
	t.Helper()
	s, err := b.js.Stream(t.Context(), b.name)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo()
}

// holds waits until the stream holds n messages.
func holds(n uint64) func(t *testing.T, b bench) {
	return func(t *testing.T, b bench) {
		t.Helper()
		await(t, func() error {
			if got := b.info(t).State.Msgs; got != n {
				return fmt.Errorf("%s holds %d messages, want %d", b.name, got, n)
			}
			return nil
		})
	}
}

// await repeats a check until it succeeds.
func await(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

func (b bench) publish(t *testing.T, sub string, h nats.Header, size int) (*jetstream.PubAck, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	m := &nats.Msg{Subject: b.name + "." + sub, Header: h, Data: make([]byte, size)}
	return b.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
}

// refuses says that a message of 100 bytes under <name>.<sub> is not stored.
func refuses(sub string) func(t *testing.T, b bench) {
	return func(t *testing.T, b bench) {
		t.Helper()
		before := b.info(t).State
		if ack, err := b.publish(t, sub, nil, 100); err == nil {
			t.Errorf("%s.%s was stored: %+v", b.name, sub, ack)
		}
		if after := b.info(t).State; after.Msgs != before.Msgs {
			t.Errorf("%s held %d messages, holds %d", b.name, before.Msgs, after.Msgs)
		}
	}
}

var trials = []trial{
	{"storage", Refused, set(func(c *jetstream.StreamConfig) { c.Storage = jetstream.FileStorage }),
		func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, nil},
	{"persist_mode", Refused, none, func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode }, nil},
	{"allow_msg_counter", Refused, none, func(c *jetstream.StreamConfig) { c.AllowMsgCounter = true }, nil},
	{"mirror", Refused, none, func(c *jetstream.StreamConfig) {
		c.Subjects, c.Mirror = nil, &jetstream.StreamSource{Name: "other"}
	}, nil},
	{"retention", Refused, none, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, nil},
	{"retention", Refused, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, none, nil},
	{"sealed", Refused, func(c *jetstream.StreamConfig) { c.Sealed = true }, none, nil},
	{"deny_delete", Refused, func(c *jetstream.StreamConfig) { c.DenyDelete = true }, none, nil},
	{"deny_purge", Refused, func(c *jetstream.StreamConfig) { c.DenyPurge = true }, none, nil},
	{"allow_msg_ttl", Refused, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }, none, nil},
	{"allow_msg_schedules", Refused, func(c *jetstream.StreamConfig) { c.AllowMsgSchedules, c.AllowRollup = true, true },
		func(c *jetstream.StreamConfig) { c.AllowRollup = true }, nil},
	{"first_seq", Refused, none, func(c *jetstream.StreamConfig) { c.FirstSeq = 100 },
		func(t *testing.T, b bench) {
			if ack, err := b.publish(t, "4", nil, 1); err != nil || ack.Sequence != 5 {
				t.Errorf("sequences did not go on: %+v, %v", ack, err)
			}
		}},

	{"max_msgs", Lossy, denied, set(denied, func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 }), holds(1)},
	{"max_msgs", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) { c.MaxMsgs = 1 }), refuses("4")},
	{"max_bytes", Lossy, denied, set(denied, func(c *jetstream.StreamConfig) { c.MaxBytes = 50 }), holds(1)},
	{"max_bytes", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) { c.MaxBytes = 50 }), refuses("4")},
	{"max_age", Lossy, set(locked, window), set(locked, window, func(c *jetstream.StreamConfig) { c.MaxAge = 100 * time.Millisecond }), holds(0)},
	{"max_msgs_per_subject", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }), holds(3)},
	{"discard", Lossy, func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 4, jetstream.DiscardNew },
		func(c *jetstream.StreamConfig) { c.MaxMsgs = 4 },
		func(t *testing.T, b bench) {
			if _, err := b.publish(t, "4", nil, 1); err != nil {
				t.Fatal(err)
			}
			if first := b.info(t).State.FirstSeq; first != 2 {
				t.Errorf("first message is %d, want 2", first)
			}
		}},
	{"discard_new_per_subject", Lossy,
		func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject, c.Discard = 1, jetstream.DiscardNew },
		func(c *jetstream.StreamConfig) {
			c.MaxMsgsPerSubject, c.Discard, c.DiscardNewPerSubject = 1, jetstream.DiscardNew, true
		}, refuses("1")},
	{"retention", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }),
		func(t *testing.T, b bench) {
			if _, err := b.publish(t, "4", nil, 1); err != nil {
				t.Fatal(err)
			}
			holds(0)(t, b)
		}},
	{"subjects", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) { c.Subjects = []string{c.Name + ".1"} }), refuses("2")},
	{"subject_transform", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: c.Name + ".9", Destination: "elsewhere"}
	}), func(t *testing.T, b bench) {
		if _, err := b.publish(t, "9", nil, 1); err != nil {
			t.Fatal(err)
		}
		s, err := b.js.Stream(t.Context(), b.name)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := s.GetMsg(t.Context(), 5); err != nil || m.Subject != "elsewhere" {
			t.Errorf("stored %v, %v", m, err)
		}
	}},
	{"allow_rollup_hdrs", Lossy, none, func(c *jetstream.StreamConfig) { c.AllowRollup = true },
		func(t *testing.T, b bench) {
			if _, err := b.publish(t, "4", nats.Header{"Nats-Rollup": {"all"}}, 1); err != nil {
				t.Fatal(err)
			}
			holds(1)(t, b)
		}},
	{"allow_msg_ttl", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }),
		func(t *testing.T, b bench) {
			if _, err := b.publish(t, "4", nats.Header{"Nats-TTL": {"1s"}}, 1); err != nil {
				t.Fatal(err)
			}
			holds(5)(t, b)
			holds(4)(t, b)
		}},
	{"allow_msg_schedules", Lossy, none, func(c *jetstream.StreamConfig) { c.AllowMsgSchedules = true },
		func(t *testing.T, b bench) {
			if c := b.info(t).Config; !c.AllowRollup {
				t.Errorf("rollups were not allowed")
			}
		}},
	{"subject_delete_marker_ttl", Lossy, none, func(c *jetstream.StreamConfig) { c.AllowMsgTTL, c.SubjectDeleteMarkerTTL = true, time.Second },
		func(t *testing.T, b bench) {
			if c := b.info(t).Config; !c.AllowRollup {
				t.Errorf("rollups were not allowed")
			}
		}},
	{"sealed", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) { c.Sealed = true }), refuses("4")},
	{"no_ack", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) { c.NoAck = true }),
		func(t *testing.T, b bench) {
			if _, err := b.publish(t, "4", nil, 1); err == nil {
				t.Error("the publisher was answered")
			}
			holds(5)(t, b)
		}},
	{"max_msg_size", Lossy, locked, set(locked, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 50 }), refuses("4")},
}

func none(*jetstream.StreamConfig) {}

// denied forbids deletes and purges: it stops none of the losses.
func denied(c *jetstream.StreamConfig) { c.DenyDelete, c.DenyPurge = true, true }

// locked is how the product's streams are: it stops none of the losses.
func locked(c *jetstream.StreamConfig) {
	c.Discard, c.DenyDelete, c.DenyPurge = jetstream.DiscardNew, true, true
}

func window(c *jetstream.StreamConfig) { c.Duplicates = 100 * time.Millisecond }

func set(fs ...func(*jetstream.StreamConfig)) func(*jetstream.StreamConfig) {
	return func(c *jetstream.StreamConfig) {
		for _, f := range fs {
			f(c)
		}
	}
}

func TestStreamRulesOnAServer(t *testing.T) {
	js := natstest.Server(t).JetStream(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for i, tr := range trials {
		tried[tr.field+string(tr.verdict)] = true
		name := fmt.Sprintf("T%d", i)
		t.Run(string(tr.verdict)+" "+tr.field, func(t *testing.T) { tr.run(t, bench{js, name}) })
	}
	for _, r := range streamRules {
		if !tried[r.field+string(r.verdict)] {
			t.Errorf("no trial shows that a change of %s is %s", r.field, r.verdict)
		}
	}
}

func (tr trial) run(t *testing.T, b bench) {
	config := func(change func(*jetstream.StreamConfig)) jetstream.StreamConfig {
		c := jetstream.StreamConfig{Name: b.name, Subjects: []string{b.name + ".*"}, AllowDirect: true, Storage: jetstream.FileStorage}
		change(&c)
		return c
	}
	from, to := config(tr.from), config(tr.to)
	create := from
	create.Sealed = false // a sealed stream could not take the messages
	if _, err := b.js.CreateStream(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"1", "2", "3", "1"} {
		if _, err := b.publish(t, sub, nil, 1); err != nil {
			t.Fatal(err)
		}
	}
	if from.Sealed {
		if _, err := b.js.UpdateStream(t.Context(), from); err != nil {
			t.Fatal(err)
		}
	}
	step, err := stepFor(t.Context(), b.js, declared{cfg: to})
	if err != nil {
		t.Fatal(err)
	}
	assertVerdict(t, step, tr.field, tr.verdict)
	p := Plan{Steps: []Step{step}}
	before := b.info(t)
	if err := Apply(t.Context(), b.js, p, false); err == nil || !strings.Contains(err.Error(), tr.field) {
		t.Errorf("apply without force: %v; want it to name %s", err, tr.field)
	}
	if after := b.info(t); after.State.Msgs != before.State.Msgs || after.Config.Discard != before.Config.Discard {
		t.Errorf("apply without force changed the stream")
	}
	if tr.verdict == Refused {
		if err := Apply(t.Context(), b.js, p, true); err == nil {
			t.Error("apply with force did what must be refused")
		}
		_, err := b.js.UpdateStream(t.Context(), to)
		switch {
		case (err == nil) != (tr.lost != nil):
			t.Errorf("the server's answer: %v", err)
		case tr.lost != nil:
			tr.lost(t, b)
		}
		return
	}
	if err := Apply(t.Context(), b.js, p, true); err != nil {
		t.Fatalf("apply with force: %v", err)
	}
	tr.lost(t, b)
}

func assertVerdict(t *testing.T, step Step, field string, v Verdict) {
	t.Helper()
	for _, c := range step.Changes {
		if c.Field == field {
			if c.Verdict != v || c.Advice == "" {
				t.Errorf("%s is %s (%s), want %s", c, c.Verdict, c.Advice, v)
			}
			return
		}
	}
	t.Errorf("the plan does not see a change of %s: %v", field, step.Changes)
}
