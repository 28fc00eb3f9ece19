package auditor

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/internal/projection"
	"correx/pkg/audit"
	"correx/pkg/events"
)

// quiet is a logger that says nothing.
var quiet = slog.New(slog.DiscardHandler)

// A scene is a stream with three checkpoints and its database.
//
// Records 1 to 40, 42 to 80 and 82 to 120 are messages, 41, 81 and 121 the
// checkpoints through the record before them, 122 to 140 messages in none.
type scene struct {
	t   *testing.T
	bus *natstest.Bus
	db  string // path
	pub string // the key that signs
}

const (
	sceneLast    = 140
	sceneCovered = 120
)

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, bus: natstest.Server(t), db: filepath.Join(t.TempDir(), "a.db")}
	natstest.Streams(t, s.bus.JetStream(t), 1)
	key := signer(t, 7)
	s.pub, _ = key.PublicKey()
	log := s.log()
	db, err := projection.Open(t.Context(), s.db, projection.Identity(log.Identity()))
	if err != nil {
		t.Fatal(err)
	}
	p := projection.New(db, log, projection.Batch{}, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	c := projection.NewCheckpointer(p, log, key, projection.Due{}, quiet)
	for seq := uint64(1); seq <= sceneLast; seq++ {
		if seq == 41 || seq == 81 || seq == 121 {
			await(t, p, seq-1)
			if err := c.Publish(natstest.Context(t)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		s.say(log, seq)
	}
	await(t, p, sceneLast)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

func await(t *testing.T, p *projection.Projector, seq uint64) {
	t.Helper()
	if err := p.Wait(natstest.Context(t), seq); err != nil {
		t.Fatal(err)
	}
}

// say appends the message that gets sequence seq.
func (s *scene) say(log *eventlog.Log, seq uint64) {
	s.t.Helper()
	f := events.MessageAdded{Ref: events.Ref{Session: events.SessionID(fmt.Sprintf("s%d", seq)), ID: events.Main},
		Role: events.RoleUser, Text: fmt.Sprintf("message %d", seq)}
	if got, err := log.Append(natstest.Context(s.t), f, 0, ""); err != nil || got != seq {
		s.t.Fatalf("message %d got %d: %v", seq, got, err)
	}
}

func signer(t *testing.T, seed byte) nkeys.KeyPair {
	t.Helper()
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{seed}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (s *scene) log() *eventlog.Log {
	s.t.Helper()
	log, err := eventlog.Open(natstest.Context(s.t), s.bus.JetStream(s.t), eventlog.Options{Source: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	return log
}

func (s *scene) stream() *Stream { return streamOf(s.t, s.bus) }

func streamOf(t *testing.T, bus *natstest.Bus) *Stream {
	t.Helper()
	stream, err := OpenStream(natstest.Context(t), bus.JetStream(t), "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// database opens a database for the rest of the test.
func database(t *testing.T, path string) *Database {
	t.Helper()
	db, err := projection.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snap.Close(); db.Close() })
	return OfDatabase(snap)
}

func verifyDatabase(t *testing.T, path string, o Options) Result {
	t.Helper()
	d := database(t, path)
	says := d.Says()
	o.Says = &says
	r, err := Verify(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func verifyStream(t *testing.T, s Source, o Options) Result {
	t.Helper()
	r, err := Verify(natstest.Context(t), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sound fails the test unless nothing is wrong.
func sound(t *testing.T, r Result) {
	t.Helper()
	for _, f := range r.Findings {
		t.Error(f)
	}
}

// named fails the test unless the first finding is the one wanted.
func named(t *testing.T, r Result, kind Kind, seq uint64) {
	t.Helper()
	if r.OK() {
		t.Fatalf("nothing was found; want %s at %d", kind, seq)
	}
	f := r.Findings[0]
	if f.Kind != kind || f.Seq != seq {
		t.Errorf("found %v\nwant %s at %d", f, kind, seq)
	}
	if f.Detail == "" || strings.Contains(f.String(), "%!") {
		t.Errorf("it says too little: %v", f)
	}
}

// given are the scene's checkpoints as somebody else kept them.
func (s *scene) given() (all []events.AuditCheckpoint) {
	s.t.Helper()
	good, _, err := Checkpoints(natstest.Context(s.t), s.stream(), s.pub)
	if err != nil || len(good) != 3 {
		s.t.Fatalf("%d checkpoints: %v", len(good), err)
	}
	for _, c := range good {
		all = append(all, c.AuditCheckpoint)
	}
	return all
}

// What nobody touched is sound, from any point to any other, and what proves it.
func TestASoundLogIsSound(t *testing.T) {
	s := newScene(t)
	for name, r := range map[string]Result{
		"stream":   verifyStream(t, s.stream(), Options{Keys: []string{s.pub}}),
		"database": verifyDatabase(t, s.db, Options{Keys: []string{s.pub}, Given: s.given()}),
	} {
		sound(t, r)
		if r.From != 1 || r.Through != sceneLast || r.Covered != sceneCovered || r.Uncovered != sceneLast-sceneCovered || r.Checkpoints != 3 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for _, c := range []struct{ from, to, begin, end uint64 }{
		{1, 0, 1, sceneLast}, {41, 0, 41, sceneLast}, {40, 0, 1, sceneLast}, {100, 110, 81, 120}, {130, 135, 121, 135}, {0, 10, 1, 40},
	} {
		r := verifyStream(t, s.stream(), Options{Keys: []string{s.pub}, From: c.from, To: c.to})
		if sound(t, r); r.From != c.begin || r.Through != c.end {
			t.Errorf("from %d to %d it looked at %d to %d", c.from, c.to, r.From, r.Through)
		}
	}
	r, err := Compare(natstest.Context(t), s.stream(), database(t, s.db), nil)
	if err != nil {
		t.Fatal(err)
	}
	if sound(t, r); r.Through != sceneLast {
		t.Errorf("it compared through %d", r.Through)
	}
	for _, source := range []Source{s.stream(), database(t, s.db)} {
		all, err := Hashes(natstest.Context(t), source, sceneCovered)
		if err != nil {
			t.Fatal(err)
		}
		last := s.given()[2]
		for _, seq := range []uint64{1, 41, 77, 120} {
			e, err := One(natstest.Context(t), source, seq)
			if err != nil {
				t.Fatal(err)
			}
			p, err := audit.Prove(e, all)
			if err == nil {
				err = p.Check(last)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := Hashes(natstest.Context(t), s.stream(), sceneLast+1); err == nil {
		t.Error("a record that is not there has a hash")
	}
}

// Without a key that is trusted there is nothing to hold a log against, and that
// is said.
func TestUntrustedKeys(t *testing.T) {
	s := newScene(t)
	other, _ := signer(t, 8).PublicKey()
	r := verifyStream(t, s.stream(), Options{Keys: []string{other}})
	named(t, r, Untrusted, 41)
	if len(r.Findings) != 3 || r.Covered != 0 {
		t.Errorf("%+v", r)
	}
	// A forgery beside the real ones is named, and they still count.
	log := s.log()
	state := audit.Begin(audit.Identity(log.Identity()))
	state.Add(audit.Hash{})
	forged, err := audit.Sign(signer(t, 8), audit.Identity(log.Identity()), state, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(natstest.Context(t), forged, 121, ""); err != nil {
		t.Fatal(err)
	}
	r = verifyStream(t, s.stream(), Options{Keys: []string{s.pub}})
	if named(t, r, Untrusted, sceneLast+1); len(r.Findings) != 1 || r.Covered != sceneCovered {
		t.Errorf("%+v", r)
	}
	r = verifyStream(t, s.stream(), Options{Keys: []string{s.pub, other}})
	named(t, r, Damaged, 1)
}

// A stream made anew has another creation time, whatever is copied into it.
func TestTamperByAStreamMadeAnew(t *testing.T) {
	s := newScene(t)
	given := s.given()
	second := natstest.Server(t)
	natstest.Streams(t, second.JetStream(t), 1)
	js := second.JetStream(t)
	err := s.stream().Each(natstest.Context(t), 1, sceneLast, func(e Entry) error {
		msg := message(e)
		delete(msg.Header, "Nats-Expected-Last-Subject-Sequence")
		delete(msg.Header, "Nats-Expected-Last-Subject-Sequence-Subject")
		_, err := js.PublishMsg(natstest.Context(t), msg)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	copied := streamOf(t, second)
	named(t, verifyStream(t, copied, Options{Keys: []string{s.pub}}), Foreign, 0)
	named(t, verifyStream(t, copied, Options{Keys: []string{s.pub}, Given: given}), Foreign, 0)
	r, err := Compare(natstest.Context(t), copied, database(t, s.db), nil)
	if err != nil {
		t.Fatal(err)
	}
	named(t, r, Foreign, 0)
}

// A log that goes on while it is verified is no worse for it.
func TestALogThatGoesOn(t *testing.T) {
	s := newScene(t)
	log := s.log()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil && n < 500; n++ {
			f := events.MessageAdded{Ref: events.Ref{Session: events.SessionID(fmt.Sprintf("more%d", n)), ID: events.Main}, Role: events.RoleUser, Text: "more"}
			if _, err := log.Append(ctx, f, 0, ""); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	}()
	for range 5 {
		sound(t, verifyStream(t, s.stream(), Options{Keys: []string{s.pub}}))
		r, err := Compare(natstest.Context(t), s.stream(), database(t, s.db), nil)
		if err != nil {
			t.Fatal(err)
		}
		sound(t, r)
	}
	<-done
}
