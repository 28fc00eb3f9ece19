package natsd_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/natsd"
	"correx/internal/streams"
	"correx/pkg/events"
)

// approval is a fact as the kernel publishes it; what a worker would like to
// have for another invocation.
func approval(t *testing.T, id string) (subject string, m *nats.Msg, f events.ApprovalGranted) {
	t.Helper()
	f = events.ApprovalGranted{
		Ref: events.Ref{Session: "s1", ID: id}, Token: "shell", Tool: "shell", Tier: events.T2,
		Digest: "00", By: "person", Scope: events.ScopeOnce, Until: time.Unix(1<<32, 0).UTC(),
		Key: "U", Signature: "c2ln",
	}
	subject, h, data, err := events.Encode(f, events.Source{Name: "kernel"}, 0, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return subject, &nats.Msg{Subject: subject, Header: nats.Header(h), Data: data}, f
}

// A forger has a role's connection and wants a message under a subject that the
// role may not publish to, by naming it as the reply of what the role may ask.
type forger struct {
	t  *testing.T
	nc *nats.Conn
	js jetstream.JetStream // the kernel's, to look at what came of it
}

// ask sends a request whose answer goes to the subject.
func (f forger) ask(api, reply, body string) {
	f.t.Helper()
	if err := f.nc.PublishRequest(api, reply, []byte(body)); err != nil {
		f.t.Fatal(err)
	}
	if err := f.nc.Flush(); err != nil {
		f.t.Fatal(err)
	}
}

// landed waits for what comes into a stream behind a sequence: n messages.
func (f forger) landed(stream string, after uint64, n int) []jetstream.Msg {
	f.t.Helper()
	c, err := f.js.OrderedConsumer(f.t.Context(), stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	var msgs []jetstream.Msg
	for range n {
		m, err := c.Next(jetstream.FetchMaxWait(5 * time.Second))
		if err != nil {
			f.t.Fatalf("%d messages came into %s, want %d: %v", len(msgs), stream, n, err)
		}
		msgs = append(msgs, m)
	}
	return msgs
}

// record is a message of EVENTS as every reader decodes it.
func (f forger) record(m jetstream.Msg) events.Record {
	f.t.Helper()
	meta, err := m.Metadata()
	if err != nil {
		f.t.Fatal(err)
	}
	return events.Decode(meta.Sequence.Stream, meta.Timestamp, m.Subject(), events.Header(m.Headers()), m.Data())
}

func newForger(t *testing.T, r access.Role) forger {
	t.Helper()
	dir := t.TempDir()
	start(t, natsd.Options{StateDir: dir, Sync: natsd.SyncInterval, Tools: []string{"shell"}})
	js := apply(t, connect(t, dir, access.Kernel))
	spec, err := streams.Default()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateConsumer(t.Context(), access.StreamEvents, streams.Consumer(spec, streams.KindTool, "shell", 0)); err != nil {
		t.Fatal(err)
	}
	_, m, _ := approval(t, "t1-0") // sequence 1: the one real approval
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return forger{t, connect(t, dir, r), js}
}

// Every call of the API that a worker has puts its answer into the stream, under
// any subject. None of what arrives may hold, as fact or as command; but for
// the real approval once more, in its own place, where it says nothing new.
func TestAWorkersReplySubjectsForgeNothing(t *testing.T) {
	calls := []struct {
		name, api, body string
		land            int // messages in EVENTS
	}{
		{"read by sequence", "$JS.API.STREAM.MSG.GET.EVENTS", `{"seq":1}`, 1},
		{"read by subject", "$JS.API.STREAM.MSG.GET.EVENTS", `{"next_by_subj":"evt.>","seq":1}`, 1},
		{"read that fails", "$JS.API.STREAM.MSG.GET.EVENTS", `{"seq":999}`, 1},
		{"read of an artifact", "$JS.API.STREAM.MSG.GET.OBJ_ARTIFACTS", `{"last_by_subj":"$O.ARTIFACTS.C.x"}`, 1},
		{"stream info", "$JS.API.STREAM.INFO.EVENTS", "", 1},
		{"consumer info", "$JS.API.CONSUMER.INFO.EVENTS.tool-shell", "", 1},
		{"next of its consumer", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.tool-shell", `{"batch":1}`, 1},
		{"next that fails", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.tool-shell", `{"batch":`, 1},
		{"acknowledged fact", "evt.s1.tool.t1-9.started", `{}`, 2},
	}
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			f := newForger(t, access.ToolWorker)
			_, wanted, _ := approval(t, "t2-0")
			if _, err := f.js.Publish(t.Context(), "$O.ARTIFACTS.C.x", wanted.Data); err != nil {
				t.Fatal(err)
			}
			f.ask(c.api, wanted.Subject, c.body)
			own, _, granted := approval(t, "t1-0")
			for _, m := range f.landed(access.StreamEvents, 1, c.land) {
				r := f.record(m)
				repeated := m.Subject() == own && fmt.Sprint(r.Fact) == fmt.Sprint(granted)
				if r.Err == nil && !repeated {
					t.Errorf("%s holds as %#v", m.Subject(), r.Fact)
				}
			}
		})
	}
}

func TestAWorkersReplySubjectsCommandNothing(t *testing.T) {
	for _, api := range []string{
		"$JS.API.STREAM.MSG.GET.EVENTS", "$JS.API.STREAM.INFO.EVENTS",
		"$JS.API.CONSUMER.INFO.EVENTS.tool-shell", "evt.s1.tool.t1-9.started",
	} {
		t.Run(api, func(t *testing.T) {
			f := newForger(t, access.ToolWorker)
			f.ask(api, "cmd.operator.session.start", `{"seq":1}`)
			m := f.landed(access.StreamCommands, 0, 1)[0]
			w := events.DecodeCommand("c1", 1, time.Time{}, m.Subject(), events.Header(m.Headers()), m.Data())
			if len(w.Faults) == 0 {
				t.Errorf("the answer is the command %#v", w.Command)
			}
		})
	}
}

// A read by the operator, who may do everything, shows the mark that Decode
// goes by: the body is of the caller's choice then.
func TestADirectReadIsMarked(t *testing.T) {
	f := newForger(t, access.Operator)
	_, wanted, _ := approval(t, "t2-0")
	if _, err := f.js.Publish(t.Context(), "$O.ARTIFACTS.C.x", wanted.Data); err != nil {
		t.Fatal(err)
	}
	allowDirectReads(t, f.nc, "OBJ_ARTIFACTS")
	f.ask("$JS.API.DIRECT.GET.OBJ_ARTIFACTS.$O.ARTIFACTS.C.x", wanted.Subject, "")
	r := f.record(f.landed(access.StreamEvents, 1, 1)[0])
	if !errors.Is(r.Err, events.ErrForged) {
		t.Errorf("record is %#v, error %v; want ErrForged", r.Fact, r.Err)
	}
}

func allowDirectReads(t *testing.T, nc *nats.Conn, stream string) {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.AllowDirect = true
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

// A viewer has queries alone. Whoever answers them may publish into inboxes
// only, so that an answer cannot be turned into a fact.
func TestAnAnswerIsNoWayIntoTheStream(t *testing.T) {
	dir := t.TempDir()
	start(t, natsd.Options{StateDir: dir, Sync: natsd.SyncInterval})
	js := apply(t, connect(t, dir, access.Kernel))
	_, wanted, _ := approval(t, "t2-0")
	projector := connect(t, dir, access.Projector)
	asked := make(chan *nats.Msg, 2)
	if _, err := projector.Subscribe("query.>", func(m *nats.Msg) {
		m.Respond(wanted.Data)
		asked <- m
	}); err != nil {
		t.Fatal(err)
	}
	if err := projector.Flush(); err != nil {
		t.Fatal(err)
	}
	viewer := connect(t, dir, access.Viewer)
	if err := viewer.PublishRequest("query.sessions", wanted.Subject, nil); err != nil {
		t.Fatal(err)
	}
	<-asked
	// The answer to a request that is honest proves that the first was dealt with.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := viewer.RequestWithContext(ctx, "query.sessions", nil); err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), access.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Msgs; n != 0 {
		t.Errorf("EVENTS holds %d messages, want none", n)
	}
}
