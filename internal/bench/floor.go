package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"correx/internal/streams"
)

// serverArg makes this program a bare NATS server: with the store directory and
// "always" or "interval" behind it. It prints its URL and serves until SIGTERM.
const serverArg = "bare-server"

func bareServer(dir, sync string) error {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir,
		SyncAlways: sync == "always", NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("not ready in 10 s")
	}
	untilTerminated(s.ClientURL())
	s.Shutdown()
	s.WaitForShutdown()
	return nil
}

// untilTerminated says where a server is, and waits for SIGTERM.
func untilTerminated(url string) {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	fmt.Println(url)
	<-stop
}

// A floor is bare JetStream: a server in its own process with Correx's streams.
type floor struct {
	js   jetstream.JetStream
	conn *nats.Conn
	stop func()
}

func (b *bench) newFloor(ctx context.Context, sync string) (*floor, error) {
	dir, err := os.MkdirTemp(b.dir, "floor-")
	if err != nil {
		return nil, err
	}
	return newFloorIn(ctx, dir, sync)
}

// newFloorIn is bare JetStream with its store in dir.
func newFloorIn(ctx context.Context, dir, sync string) (*floor, error) {
	url, stop, err := startSelf(serverArg, dir, sync)
	if err != nil {
		return nil, err
	}
	f := &floor{stop: stop}
	if f.conn, err = nats.Connect(url); err != nil {
		f.stop()
		return nil, err
	}
	if f.js, err = jetstream.New(f.conn); err == nil {
		err = applyStreams(ctx, f.js)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// startSelf runs this program as a server, which says on its first line where it
// is.
func startSelf(args ...string) (url string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(line[:n])), stop, nil
}

func applyStreams(ctx context.Context, js jetstream.JetStream) error {
	spec, err := streams.Default()
	if err != nil {
		return err
	}
	plan, err := streams.MakePlan(ctx, js, spec, 1)
	if err != nil {
		return err
	}
	return streams.Apply(ctx, js, plan, false)
}

func (f *floor) close() { f.conn.Close(); f.stop() }

// body is as large as a usual fact.
var body = []byte(`{"session":"bench","id":"x","text":"` + strings.Repeat("x", 400) + `"}`)

// call is the floor of one approved call: four conditional appends, one after
// another.
func (f *floor) call(ctx context.Context, id string) error {
	filter := "evt.bench.tool." + id + ".>"
	var last uint64
	for _, fact := range [...]string{"requested.echo", "approved.echo", "started", "completed"} {
		ack, err := f.js.Publish(ctx, "evt.bench.tool."+id+"."+fact, body, jetstream.WithExpectLastSequenceForSubject(last, filter))
		if err != nil {
			return err
		}
		last = ack.Sequence
	}
	return nil
}

// rate is calls a second from so many writers.
func (f *floor) rate(ctx context.Context, writers int, span time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, span+10*time.Second)
	defer cancel()
	var done, failed atomic.Int64
	var work sync.WaitGroup
	tag := fmt.Sprint(time.Now().UnixNano())
	begin := time.Now()
	for w := range writers {
		work.Go(func() {
			for n := 0; time.Since(begin) < span; n++ {
				if f.call(ctx, fmt.Sprintf("%s-%d-%d", tag, w, n)) != nil {
					failed.Add(1)
					return
				}
				done.Add(1)
			}
		})
	}
	work.Wait()
	if failed.Load() > 0 {
		return 0, fmt.Errorf("floor: %d writers failed", failed.Load())
	}
	return float64(done.Load()) / time.Since(begin).Seconds(), nil
}

// latency is how long each of n rounds takes, one at a time, in milliseconds.
func (f *floor) latency(ctx context.Context, n int) ([]float64, error) {
	tag := time.Now().UnixNano()
	return timed(n, func(k int) error { return f.call(ctx, fmt.Sprintf("%d-l-%d", tag, k)) })
}

// timed is how long each of n calls of one takes, in milliseconds.
func timed(n int, one func(k int) error) ([]float64, error) {
	times := make([]float64, n)
	for k := range times {
		begin := time.Now()
		if err := one(k); err != nil {
			return nil, err
		}
		times[k] = float64(time.Since(begin).Microseconds()) / 1000
	}
	return times, nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

func (b *bench) scratch(name string) (string, error) {
	dir := filepath.Join(b.dir, name)
	return dir, os.MkdirAll(dir, 0o700)
}
