package auditor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"correx/internal/eventlog"
	"correx/internal/natstest"
	"correx/internal/projection"
	"correx/internal/testenv"
	"correx/pkg/events"
)

// The test binary is its own victim: with these variables it is a projector that
// signs as often as it can.
const (
	childURL  = "CORREX_TEST_SIGN_URL"
	childDB   = "CORREX_TEST_SIGN_DB"
	childSeed = "CORREX_TEST_SIGN_SEED"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		if err := child(context.Background(), url, os.Getenv(childDB), os.Getenv(childSeed)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child projects and signs until it is killed. It writes a byte when it begins,
// and one for each checkpoint that it is about to publish and has published.
func child(ctx context.Context, url, path, seed string) error {
	fmt.Print("!")
	key, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return err
	}
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	log, err := eventlog.Open(ctx, js, eventlog.Options{Source: "test"})
	if err != nil {
		return err
	}
	if _, err := projection.Acquire(path); err != nil {
		return err
	}
	db, err := projection.Open(ctx, path, projection.Identity(log.Identity()))
	if err != nil {
		return err
	}
	p := projection.New(db, log, projection.Batch{Size: 7, Wait: time.Millisecond}, quiet)
	c := projection.NewCheckpointer(p, noisyLog{log}, key, projection.Due{Every: 5, Interval: 3 * time.Millisecond}, quiet)
	failed := make(chan error, 2)
	go func() { failed <- p.Run(ctx) }()
	go func() { failed <- c.Run(ctx) }()
	return <-failed
}

type noisyLog struct{ *eventlog.Log }

func (l noisyLog) Append(ctx context.Context, f events.Fact, after uint64, cause string) (uint64, error) {
	fmt.Print("<")
	seq, err := l.Log.Append(ctx, f, after, cause)
	fmt.Print(">")
	return seq, err
}

// However often a projector is killed while it writes and signs, and wherever: its
// database is that of the log to the last row, and every checkpoint is true.
func TestKilledWhileSigning(t *testing.T) {
	kills := 15
	if os.Getenv("CORREX_SOAK") == "1" {
		kills = 200
	}
	rng := rand.New(rand.NewPCG(testenv.Seed(t), 0))
	s := &scene{t: t, bus: natstest.Server(t), db: filepath.Join(t.TempDir(), "a.db")}
	natstest.Streams(t, s.bus.JetStream(t), 1)
	key := signer(t, 7)
	s.pub, _ = key.PublicKey()
	seed, err := key.Seed()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	writing := make(chan error, 1)
	go func() { writing <- s.chatter(ctx) }()
	for k := range kills {
		if err := s.killAfter(string(seed), rng.IntN(8)); err != nil {
			t.Fatalf("kill %d: %v", k, err)
		}
	}
	stop()
	if err := <-writing; err != nil {
		t.Fatal(err)
	}
	s.settle(key)
	r := verifyStream(t, s.stream(), Options{Keys: []string{s.pub}})
	if sound(t, r); r.Checkpoints < kills/5 {
		t.Errorf("there are %d checkpoints of %d kills: they prove little", r.Checkpoints, kills)
	}
	sound(t, verifyDatabase(t, s.db, Options{Keys: []string{s.pub}}))
	if r, err = Compare(natstest.Context(t), s.stream(), database(t, s.db), nil); err != nil {
		t.Fatal(err)
	}
	sound(t, r)
	log := s.log()
	d, err := projection.Verify(natstest.Context(t), s.db, t.TempDir(), projection.Identity(log.Identity()), log, func(uint64, uint64) {})
	if err != nil || d != nil {
		t.Errorf("the database is not that of a rebuild: %+v, %v", d, err)
	}
}

// chatter puts messages on the log until ctx ends.
func (s *scene) chatter(ctx context.Context) error {
	log := s.log()
	for n := 0; ctx.Err() == nil; n++ {
		f := events.MessageAdded{Ref: events.Ref{Session: events.SessionID(fmt.Sprintf("s%d", n)), ID: events.Main}, Role: events.RoleUser, Text: "more"}
		if _, err := log.Append(ctx, f, 0, ""); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// killAfter starts a projector and kills it when it has said so much.
func (s *scene) killAfter(seed string, bytes int) error {
	cmd := exec.CommandContext(s.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+s.bus.URL(), childDB+"="+s.db, childSeed+"="+seed)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	in := bufio.NewReader(out)
	for range bytes + 1 {
		if _, err := in.ReadByte(); err != nil {
			return fmt.Errorf("the projector ended by itself: %w", errors.Join(err, cmd.Wait()))
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	_ = cmd.Wait() // it was killed: that is its error
	return nil
}

// settle lets a projector do what is left, and sign it.
func (s *scene) settle(key nkeys.KeyPair) {
	s.t.Helper()
	log := s.log()
	db, err := projection.Open(s.t.Context(), s.db, projection.Identity(log.Identity()))
	if err != nil {
		s.t.Fatal(err)
	}
	p := projection.New(db, log, projection.Batch{}, quiet)
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	last, err := log.Last(natstest.Context(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	await(s.t, p, last)
	if err := projection.NewCheckpointer(p, log, key, projection.Due{}, quiet).Finish(natstest.Context(s.t)); err != nil {
		s.t.Error(err)
	}
	cancel()
	if err := errors.Join(<-ended, db.Close()); err != nil {
		s.t.Error(err)
	}
}

// A store that lost its end, and one that used the lost sequences again: the
// projector raises an alarm and says what can be done, and the database keeps what
// the stream has lost.
func TestAProjectorOnADamagedStore(t *testing.T) {
	s := newScene(t)
	s.bus.Stop(0)
	dir := s.bus.StoreDir(0)
	writeBlock(t, dir, readBlock(t, dir)[:100])
	s.bus.Start(0)
	run := func(want error) {
		t.Helper()
		log := s.log()
		db, err := projection.Open(t.Context(), s.db, projection.Identity(log.Identity()))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		err = projection.New(db, log, projection.Batch{}, quiet).Run(natstest.Context(t))
		var alarm *projection.AlarmError
		if !errors.Is(err, want) || !errors.As(err, &alarm) || alarm.Remedy == "" {
			t.Fatalf("got %v, want the alarm: %v", err, want)
		}
		if at, err := db.Checkpoint(t.Context()); err != nil || at.Seq != sceneLast {
			t.Errorf("the database is at %d: %v", at.Seq, err)
		}
	}
	run(projection.ErrShrunkenStream)
	log := s.log()
	for n := 101; n <= 150; n++ {
		f := events.MessageAdded{Ref: events.Ref{Session: events.SessionID(fmt.Sprintf("again%d", n)), ID: events.Main}, Role: events.RoleUser, Text: "again"}
		if _, err := log.Append(natstest.Context(t), f, 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	run(projection.ErrChangedRecord)
	r, err := Compare(natstest.Context(t), s.stream(), database(t, s.db), nil)
	if err != nil {
		t.Fatal(err)
	}
	named(t, r, Altered, 101)
}
