package signedlog_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/access"
	"correx/internal/approval"
	"correx/internal/natstest"
	"correx/internal/signedlog"
	"correx/pkg/events"
)

// TestAnApprovalHoldsIfTheKernelSignedIt: for this log, and by the key that the
// state directory names.
func TestAnApprovalHoldsIfTheKernelSignedIt(t *testing.T) {
	state := t.TempDir()
	if err := access.EnsureKeys(state); err != nil {
		t.Fatal(err)
	}
	kernel, err := access.Signer(state)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	js := natstest.Server(t).JetStream(t)
	natstest.Streams(t, js, 1)
	log, err := signedlog.Open(natstest.Context(t), js, state, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	here := approval.StreamIdentity(log.Identity())
	elsewhere := here
	elsewhere.Created = here.Created.Add(time.Second)
	for _, c := range []struct {
		name  string
		key   nkeys.KeyPair
		of    approval.StreamIdentity
		holds bool
	}{
		{"kernel", kernel, here, true},
		{"stranger", stranger, here, false},
		{"another-log", kernel, elsewhere, false},
		{"nobody", nil, here, false},
	} {
		f := events.ApprovalGranted{
			Ref: events.Ref{Session: "s1", ID: c.name}, Token: "shell", Tool: "shell", Tier: events.T2, Digest: "d",
			By: "person", Scope: events.ScopeOnce, Until: time.Now().Add(time.Minute).UTC(),
		}
		if c.key != nil {
			if f, err = approval.Sign(c.key, c.of, f); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := log.Append(natstest.Context(t), f, 0, ""); err != nil {
			t.Fatal(err)
		}
		recs, err := log.Read(natstest.Context(t), events.AggregateOf(f))
		if err != nil || len(recs) != 1 {
			t.Fatalf("%s: read %v, %v", c.name, recs, err)
		}
		if r := recs[0]; (r.Err == nil) != c.holds || (r.Fact != nil) != c.holds {
			t.Errorf("signed by %s: %+v, %v; holds should be %v", c.name, r.Fact, r.Err, c.holds)
		}
	}
}

func TestAwaitWaitsForTheLog(t *testing.T) {
	state := t.TempDir()
	if err := access.EnsureKeys(state); err != nil {
		t.Fatal(err)
	}
	js := natstest.Server(t).JetStream(t)
	opened := make(chan error, 1)
	waiting := make(chan struct{}, 100)
	logger := slog.New(slog.NewTextHandler(signal(waiting), nil))
	go func() {
		_, err := signedlog.Await(natstest.Context(t), js, state, "test", logger)
		opened <- err
	}()
	<-waiting // it has said that there is no log
	natstest.Streams(t, js, 1)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// signal tells that something was written.
type signal chan struct{}

func (s signal) Write(p []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(p), nil
}
