package projection

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/pkg/audit"
	"correx/pkg/events"
)

func testKey(t testing.TB) nkeys.KeyPair {
	t.Helper()
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signing runs a checkpointer of p until the test's end.
func signing(t *testing.T, p *Projector, log Appender, due Due) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- NewCheckpointer(p, log, testKey(t), due, quiet).Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// checkpoints are those on the log, each with its record's sequence.
func checkpoints(t *testing.T, log *eventlog.Log) (seqs []uint64, all []events.AuditCheckpoint) {
	t.Helper()
	recs, err := log.Read(natstest.Context(t), audit.Checkpoints())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		c, ok := r.Fact.(events.AuditCheckpoint)
		if !ok {
			t.Fatalf("record %d is no checkpoint: %v", r.Seq, r.Err)
		}
		seqs, all = append(seqs, r.Seq), append(all, c)
	}
	return seqs, all
}

// awaitCheckpoint waits until there is a checkpoint through seq or later, and
// returns how many there are.
func awaitCheckpoint(t *testing.T, bus *natstest.Bus, log *eventlog.Log, seq uint64) int {
	t.Helper()
	var n int
	bus.Await("a checkpoint", func() bool {
		_, all := checkpoints(t, log)
		n = len(all)
		return n > 0 && all[n-1].Through >= seq
	})
	return n
}

// Each checkpoint says of its prefix what the log says, names the one before, is
// signed, and has the fingerprints of what is new in it.
func TestCheckpointsSayWhatTheLogSays(t *testing.T) {
	bus := startBus(t)
	log := openLog(t, bus.URL())
	recs := messages(t, 300)
	p, _ := following(t, log, filepath.Join(t.TempDir(), "a.db"))
	signing(t, p, log, Due{Every: 50, Interval: time.Hour})
	last := map[events.Aggregate]uint64{}
	for n, r := range recs {
		seq, err := log.Append(natstest.Context(t), r.Fact, last[r.Aggregate], "")
		if err != nil {
			t.Fatal(err)
		}
		last[r.Aggregate] = seq
		if n%100 == 99 {
			awaitCheckpoint(t, bus, log, seq-60)
		}
	}
	all, err := log.ReadFilter(natstest.Context(t), All, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	state, h := audit.Begin(audit.Identity(log.Identity())), audit.Hasher{}
	states := []audit.State{state.Clone()}
	var prints []audit.Fingerprint
	for _, r := range all {
		hash := h.Event(stored(r))
		state.Add(hash)
		states = append(states, state.Clone())
		prints = append(prints, audit.FingerprintOf(h.Content(r.Subject, r.Header, r.Data), hash))
	}
	seqs, cs := checkpoints(t, log)
	if len(cs) < 3 {
		t.Fatalf("there are %d checkpoints", len(cs))
	}
	pub, _ := testKey(t).PublicKey()
	var before uint64
	for k, c := range cs {
		want := states[c.Through]
		if c.Chain != want.Chain.String() || c.Root != want.Tree.Root().String() {
			t.Errorf("checkpoint %d says another of the first %d records", k, c.Through)
		}
		if err := audit.Check(c, pub); err != nil {
			t.Error(err)
		}
		if k > 0 && c.Previous != seqs[k-1] {
			t.Errorf("checkpoint %d names %d as the one before, not %d", k, c.Previous, seqs[k-1])
		}
		if c.Fingerprints != audit.EncodeFingerprints(prints[before:c.Through]) {
			t.Errorf("checkpoint %d has other fingerprints than those from %d to %d", k, before+1, c.Through)
		}
		before = c.Through
	}
}

// Five projectors sign no more than one would: who is late does nothing. A
// checkpoint provokes no other, neither one's own nor another's.
func TestSeveralProjectorsSignOnce(t *testing.T) {
	bus := startBus(t)
	log := openLog(t, bus.URL())
	publish(t, bus.JetStream(t), messages(t, 200))
	for range 5 {
		p, _ := following(t, openLog(t, bus.URL()), filepath.Join(t.TempDir(), "a.db"))
		signing(t, p, log, Due{Every: 100, Interval: 20 * time.Millisecond})
	}
	awaitCheckpoint(t, bus, log, 200)
	// A marker comes behind the checkpoint; only that may provoke another.
	marker := events.MessageAdded{Ref: mainRef("marker"), Role: events.RoleUser, Text: "now"}
	var after uint64
	for k := range 5 {
		seq, err := log.Append(natstest.Context(t), marker, after, "")
		if err != nil {
			t.Fatal(err)
		}
		after = seq
		n := awaitCheckpoint(t, bus, log, seq)
		if n > 2+k {
			t.Fatalf("after %d reasons there are %d checkpoints", 2+k, n)
		}
	}
}

// A refusingLog lets another be faster.
type refusingLog struct {
	*eventlog.Log
	mu     sync.Mutex
	denied int
}

func (l *refusingLog) Append(context.Context, events.Fact, uint64, string) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.denied++
	return 0, eventlog.ErrConflict
}

// Who was refused does not ask again before the one that was faster has come.
func TestWhoIsLateDoesNotInsist(t *testing.T) {
	bus := startBus(t)
	log := openLog(t, bus.URL())
	publish(t, bus.JetStream(t), messages(t, 30))
	p, _ := following(t, log, filepath.Join(t.TempDir(), "a.db"))
	wait(t, p, 30)
	refusing := &refusingLog{Log: log}
	c := NewCheckpointer(p, refusing, testKey(t), Due{}, quiet)
	for range 10 {
		if err := c.Publish(natstest.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	if refusing.denied != 1 {
		t.Errorf("it asked %d times", refusing.denied)
	}
	if err := NewCheckpointer(p, log, testKey(t), Due{}, quiet).Publish(natstest.Context(t)); err != nil {
		t.Fatal(err)
	}
	wait(t, p, 31)
	if err := c.Publish(natstest.Context(t)); err != nil || refusing.denied != 1 {
		t.Errorf("nothing is new, and it asked %d times: %v", refusing.denied, err)
	}
}

// A role that may not publish checkpoints is told so, and goes on without.
type deniedLog struct{ *eventlog.Log }

func (l deniedLog) Append(context.Context, events.Fact, uint64, string) (uint64, error) {
	return 0, errors.Join(errors.New("evt.system.audit.main.checkpoint"), eventlog.ErrDenied)
}

func TestADeniedCheckpointEndsNothing(t *testing.T) {
	bus := startBus(t)
	log := openLog(t, bus.URL())
	publish(t, bus.JetStream(t), messages(t, 3))
	p, _ := following(t, log, filepath.Join(t.TempDir(), "a.db"))
	c := NewCheckpointer(p, deniedLog{log}, testKey(t), Due{Every: 1}, quiet)
	if err := c.Run(natstest.Context(t)); err != nil {
		t.Error(err)
	}
}
