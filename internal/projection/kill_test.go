package projection

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/eventlog"
	"correx/internal/testenv"
	"correx/pkg/events"
)

// The test binary is its own victim: with these variables it is a projector.
const (
	childURL = "CORREX_TEST_PROJECT_URL"
	childDB  = "CORREX_TEST_PROJECT_DB"
	childTo  = "CORREX_TEST_BACKUP_TO" // with this one it backs childDB up

	childMigrates = "CORREX_TEST_MIGRATE" // with this one it migrates a database, and stops short of the end
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		if err := child(url, os.Getenv(childDB)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if to := os.Getenv(childTo); to != "" {
		if _, err := Backup(context.Background(), os.Getenv(childDB), to); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(childMigrates); path != "" {
		fmt.Fprintln(os.Stderr, halfMigrated(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// child projects until it is killed. It writes a byte when it begins, and one
// for each record that comes, so that whoever watches can kill it at any of them.
func child(url, path string) error {
	fmt.Print("!")
	ctx := context.Background()
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
	if _, err := Acquire(path); err != nil {
		return err
	}
	db, err := Open(ctx, path, Identity(log.Identity()))
	if err != nil {
		return err
	}
	return New(db, noisyLog{log}, Batch{Size: 7}, quiet).Run(ctx)
}

type noisyLog struct{ *eventlog.Log }

func (l noisyLog) Follow(ctx context.Context, filter string, from uint64, fn func(events.Record) error) error {
	return l.Log.Follow(ctx, filter, from, func(r events.Record) error {
		fmt.Print(".")
		return fn(r)
	})
}

// However often the projector is killed, and wherever: nothing is missing and
// nothing stands twice.
func TestKilledAtAnyPointNothingIsMissingAndNothingTwice(t *testing.T) {
	kills := 20
	if os.Getenv("CORREX_SOAK") == "1" {
		kills = 200
	}
	seed := testenv.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	bus := startBus(t)
	s := newStory(t)
	randomStory(s, rng, 60*kills)
	publish(t, bus.JetStream(t), wellFormed(s.recs))
	path := filepath.Join(t.TempDir(), "killed.db")
	for k := range kills {
		after := rng.IntN(120)
		if k%5 == 0 {
			after = 0 // in the middle of the start
		}
		if err := killAfter(t, bus.URL(), path, after); err != nil {
			t.Fatalf("seed %d, kill %d: %v", seed, k, err)
		}
	}
	log := openLog(t, bus.URL())
	p, stop := following(t, log, path)
	if p.Applied() == uint64(len(s.recs)) {
		t.Error("the database was complete before the last kill: the kills prove little")
	}
	if p.Applied() == 0 {
		t.Error("nothing was applied between the kills: they prove little")
	}
	wait(t, p, uint64(len(s.recs)))
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	same(t, path, log)
}

// killAfter starts a projector and kills it when some records have come to it.
func killAfter(t *testing.T, url, path string, records int) error {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+url, childDB+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	in := bufio.NewReader(out)
	for range records + 1 {
		if _, err := in.ReadByte(); err != nil {
			return fmt.Errorf("the projector ended by itself: %w", cmd.Wait())
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	_ = cmd.Wait() // it was killed: that is its error
	return nil
}
