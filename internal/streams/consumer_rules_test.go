package streams

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/natstest"
)

// A consumerTrial is a change to one field of a consumer on a real server.
type consumerTrial struct {
	field    string
	verdict  Verdict
	from, to func(*jetstream.ConsumerConfig)
	// before, if any, is done between creation and change.
	before func(t *testing.T, c jetstream.Consumer)
	// lost shows what the change did. Nil for a change that the server refuses.
	lost func(t *testing.T, c jetstream.Consumer)
}

var consumerTrials = []consumerTrial{
	{"deliver_policy", Refused, plain, with(func(c *jetstream.ConsumerConfig) { c.DeliverPolicy = jetstream.DeliverNewPolicy }), nil, nil},
	{"opt_start_seq", Refused, bySequence(1), bySequence(2), nil, nil},
	{"opt_start_time", Refused, byTime(1), byTime(2), nil, nil},
	{"ack_policy", Refused, plain, with(func(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckNonePolicy }), nil, nil},
	{"replay_policy", Refused, plain, with(func(c *jetstream.ConsumerConfig) { c.ReplayPolicy = jetstream.ReplayOriginalPolicy }), nil, nil},
	{"mem_storage", Refused, plain, with(func(c *jetstream.ConsumerConfig) { c.MemoryStorage = true }), nil, nil},
	{"max_waiting", Refused, plain, with(func(c *jetstream.ConsumerConfig) { c.MaxWaiting = 7 }), nil, nil},
	{"idle_heartbeat", Refused, push, with(push, func(c *jetstream.ConsumerConfig) { c.IdleHeartbeat = time.Second }), nil, nil},
	{"flow_control", Refused, with(push, heartbeat), with(push, heartbeat, func(c *jetstream.ConsumerConfig) { c.FlowControl = true }), nil, nil},
	{"deliver_subject", Refused, plain, push, nil, nil},
	{"deliver_subject", Refused, push, plain, nil, nil},

	{"max_deliver", Lossy, plain, with(func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 1 }),
		func(t *testing.T, c jetstream.Consumer) { next(t, c) }, // not acknowledged
		func(t *testing.T, c jetstream.Consumer) {
			var got []string
			for range 2 {
				got = append(got, next(t, c).Subject())
			}
			if fmt.Sprint(got) != "[c.2 c.3]" {
				t.Errorf("delivered %v; the first was to be lost", got)
			}
			nothing(t, c)
		}},
	{"filter_subject", Lossy, plain, with(func(c *jetstream.ConsumerConfig) { c.FilterSubject = "c.9" }), nil, nothing},
	{"filter_subjects", Lossy, plain, with(func(c *jetstream.ConsumerConfig) { c.FilterSubjects = []string{"c.8", "c.9"} }), nil, nothing},
	{"headers_only", Lossy, plain, with(func(c *jetstream.ConsumerConfig) { c.HeadersOnly = true }), nil,
		func(t *testing.T, c jetstream.Consumer) {
			if m := next(t, c); len(m.Data()) != 0 {
				t.Errorf("body is %q", m.Data())
			}
		}},
	{"inactive_threshold", Lossy, plain, with(func(c *jetstream.ConsumerConfig) { c.InactiveThreshold = 200 * time.Millisecond }), nil,
		func(t *testing.T, c jetstream.Consumer) {
			await(t, func() error {
				if _, err := c.Info(t.Context()); !errors.Is(err, jetstream.ErrConsumerNotFound) {
					return fmt.Errorf("the consumer is still there: %v", err)
				}
				return nil
			})
		}},
}

// plain is how the product's consumers are.
func plain(c *jetstream.ConsumerConfig) { c.AckPolicy = jetstream.AckExplicitPolicy }

func push(c *jetstream.ConsumerConfig) { plain(c); c.DeliverSubject = "deliver.here" }

func heartbeat(c *jetstream.ConsumerConfig) { c.IdleHeartbeat = time.Second }

func bySequence(n uint64) func(*jetstream.ConsumerConfig) {
	return with(func(c *jetstream.ConsumerConfig) {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverByStartSequencePolicy, n
	})
}

func byTime(n int64) func(*jetstream.ConsumerConfig) {
	return with(func(c *jetstream.ConsumerConfig) {
		c.DeliverPolicy, c.OptStartTime = jetstream.DeliverByStartTimePolicy, new(time.Unix(n, 0))
	})
}

func with(fs ...func(*jetstream.ConsumerConfig)) func(*jetstream.ConsumerConfig) {
	return func(c *jetstream.ConsumerConfig) {
		plain(c)
		for _, f := range fs {
			f(c)
		}
	}
}

func next(t *testing.T, c jetstream.Consumer) jetstream.Msg {
	t.Helper()
	m, err := c.Next(jetstream.FetchMaxWait(5 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// nothing says that there is nothing to deliver.
func nothing(t *testing.T, c jetstream.Consumer) {
	t.Helper()
	batch, err := c.FetchNoWait(1)
	if err != nil {
		t.Fatal(err)
	}
	for m := range batch.Messages() {
		t.Errorf("delivered %s", m.Subject())
	}
}

func TestConsumerRulesOnAServer(t *testing.T) {
	js := natstest.Server(t).JetStream(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "C", Subjects: []string{"c.*"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := js.Publish(t.Context(), fmt.Sprintf("c.%d", i+1), []byte("body")); err != nil {
			t.Fatal(err)
		}
	}
	tried := map[string]bool{}
	for i, tr := range consumerTrials {
		tried[tr.field+string(tr.verdict)] = true
		t.Run(string(tr.verdict)+" "+tr.field, func(t *testing.T) { tr.run(t, js, fmt.Sprintf("c%d", i)) })
	}
	for _, r := range consumerRules {
		if !tried[r.field+string(r.verdict)] {
			t.Errorf("no trial shows that a change of %s is %s", r.field, r.verdict)
		}
	}
}

func (tr consumerTrial) run(t *testing.T, js jetstream.JetStream, name string) {
	config := func(change func(*jetstream.ConsumerConfig)) ConsumerSpec {
		c := jetstream.ConsumerConfig{Durable: name, AckWait: 300 * time.Millisecond}
		change(&c)
		if c.AckPolicy == jetstream.AckNonePolicy {
			c.AckWait = 0
		}
		return ConsumerSpec{Stream: "C", Config: c}
	}
	from, to := config(tr.from), config(tr.to)
	if err := from.create(t.Context(), js); err != nil {
		t.Fatal(err)
	}
	if tr.before != nil {
		tr.before(t, consumer(t, js, name))
	}
	step, err := stepFor(t.Context(), js, to)
	if err != nil {
		t.Fatal(err)
	}
	assertVerdict(t, step, tr.field, tr.verdict)
	p := Plan{Steps: []Step{step}}
	if err := Apply(t.Context(), js, p, false); err == nil || !strings.Contains(err.Error(), tr.field) {
		t.Errorf("apply without force: %v; want it to name %s", err, tr.field)
	}
	if tr.verdict == Refused {
		if err := Apply(t.Context(), js, p, true); err == nil {
			t.Error("apply with force did what must be refused")
		}
		if err := to.update(t.Context(), js); err == nil {
			t.Error("the server does not refuse it")
		}
		return
	}
	if err := Apply(t.Context(), js, p, true); err != nil {
		t.Fatalf("apply with force: %v", err)
	}
	tr.lost(t, consumer(t, js, name))
}

func consumer(t *testing.T, js jetstream.JetStream, name string) jetstream.Consumer {
	t.Helper()
	c, err := js.Consumer(t.Context(), "C", name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
