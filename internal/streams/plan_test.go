package streams_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/access"
	"correx/internal/natstest"
	"correx/internal/streams"
)

func verdicts(p streams.Plan) string {
	var v []string
	for _, s := range p.Steps {
		v = append(v, string(s.Verdict))
	}
	return strings.Join(v, " ")
}

func TestAChangeThatLosesNothingIsApplied(t *testing.T) {
	js := natstest.Server(t).JetStream(t)
	s := spec(t)
	apply(t, js, s)
	s.Streams[0].Description = "other words"
	s.Streams[0].Subjects = append(s.Streams[0].Subjects, "evt2.>")
	s.Consumers[0].Config.MaxAckPending = 500
	p := plan(t, js, s)
	if got := verdicts(p); got != "update unchanged unchanged update" {
		t.Fatalf("verdicts are %s:\n%s", got, p)
	}
	for _, want := range []string{
		`description: "facts, what happened" → "other words"`, `subjects: ["evt.>"] → ["evt.>","evt2.>"]`, `max_ack_pending: -1 → 500`,
	} {
		if !strings.Contains(p.String(), want) {
			t.Errorf("the plan does not say %q:\n%s", want, p)
		}
	}
	if err := streams.Apply(t.Context(), js, p, false); err != nil {
		t.Fatal(err)
	}
	if again := plan(t, js, s); !again.Unchanged() {
		t.Errorf("after it was applied:\n%s", again)
	}
}

func TestNothingIsChangedWhenOneChangeIsRefused(t *testing.T) {
	js := natstest.Server(t).JetStream(t)
	s := spec(t)
	apply(t, js, s)
	s.Streams[0].Description = "other words" // could be changed
	s.Streams[1].Storage = jetstream.MemoryStorage
	p := plan(t, js, s)
	if got := verdicts(p); got != "update refused unchanged unchanged" {
		t.Fatalf("verdicts are %s:\n%s", got, p)
	}
	for _, force := range []bool{false, true} {
		err := streams.Apply(t.Context(), js, p, force)
		if err == nil || !strings.Contains(err.Error(), `stream COMMANDS: storage: "file" → "memory" (refused: the server never changes it`) {
			t.Errorf("apply, force %t: %v", force, err)
		}
	}
	if got := verdicts(plan(t, js, s)); got != "update refused unchanged unchanged" {
		t.Errorf("something was changed: %s", got)
	}
}

func TestForceIsOfferedOnlyWhereItHelps(t *testing.T) {
	js := natstest.Server(t).JetStream(t)
	s := spec(t)
	apply(t, js, s)
	s.Streams[0].MaxMsgs = 1
	err := streams.Apply(t.Context(), js, plan(t, js, s), false)
	if err == nil || !strings.Contains(err.Error(), "or apply with force") {
		t.Errorf("lossy: %v", err)
	}
	s.Streams[1].DenyDelete = false
	err = streams.Apply(t.Context(), js, plan(t, js, s), false)
	if err == nil || strings.Contains(err.Error(), "or apply with force") {
		t.Errorf("lossy and refused: %v", err)
	}
}

func TestAPlanThatIsOutOfDateIsNotApplied(t *testing.T) {
	js := natstest.Server(t).JetStream(t)
	s := spec(t)
	apply(t, js, s)
	s.Streams[0].Description = "mine"
	p := plan(t, js, s)
	theirs := s.Streams[0]
	theirs.Description = "theirs"
	if _, err := js.UpdateStream(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if err := streams.Apply(t.Context(), js, p, false); err == nil || !strings.Contains(err.Error(), "plan again") {
		t.Errorf("apply: %v", err)
	}
}

func TestDriftOfWhatTheFileLeavesOpenIsSeen(t *testing.T) {
	js := natstest.Server(t).JetStream(t)
	s := spec(t)
	apply(t, js, s)
	theirs := s.Streams[0]
	theirs.MaxMsgs = 1000000
	if _, err := js.UpdateStream(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if p := plan(t, js, s); !strings.Contains(p.String(), "max_msgs: 1000000 → -1") {
		t.Errorf("the plan does not see it:\n%s", p)
	}
	apply(t, js, s)
}

func TestAConsumerOfTheOtherKindIsRefused(t *testing.T) {
	js := natstest.Server(t).JetStream(t)
	s := spec(t)
	pull := s.Consumers
	s.Consumers = nil
	apply(t, js, s)
	_, err := js.CreatePushConsumer(t.Context(), access.StreamCommands, jetstream.ConsumerConfig{
		Durable: access.KernelCommands, DeliverSubject: "somewhere",
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Consumers = pull
	if got := verdicts(plan(t, js, s)); got != "unchanged unchanged unchanged refused" {
		t.Errorf("verdicts are %s", got)
	}
}

func TestTheSameFileServesACluster(t *testing.T) {
	js := natstest.Cluster(t, 3).JetStream(t)
	s := spec(t)
	three := func() streams.Plan {
		p, err := streams.MakePlan(t.Context(), js, s, 3)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := streams.Apply(t.Context(), js, three(), false); err != nil {
		t.Fatal(err)
	}
	if p := three(); !p.Unchanged() {
		t.Errorf("after it was applied:\n%s", p)
	}
	for _, name := range []string{access.StreamEvents, access.StreamCommands, "OBJ_" + access.BucketArtifacts} {
		st, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if n := st.CachedInfo().Config.Replicas; n != 3 {
			t.Errorf("%s has %d replicas", name, n)
		}
	}
}
