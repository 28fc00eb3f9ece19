package llama

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"correx/pkg/events"
)

// quick stands in for llama-server where only times matter: a load takes a
// second, and the process is dead as soon as it is to stop.
type quick struct {
	loads atomic.Int32
	fail  error
}

func (q *quick) launch(ctx context.Context, d Descriptor) (*Process, error) {
	n := q.loads.Add(1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if q.fail != nil {
		return nil, q.fail
	}
	hc := &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("[]"))}, nil
	})}
	p := &Process{
		Descriptor: d, Latency: time.Second, client: NewClient(d.ModelID, "http://quick", "", hc),
		log: newLogRing(&logFile{}), grace: time.Hour, pid: int(n), gone: true, done: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	go func() { <-p.ctx.Done(); close(p.done) }()
	return p, nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// simulate runs f in a bubble of its own time with a manager of quick models.
func simulate(t *testing.T, hold time.Duration, f func(t *testing.T, m *Manager, q *quick, s *story)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q, s := &quick{}, newStory()
		m := newManager(Config{Hold: hold, Observer: s.observe}, q.launch, &logFile{})
		f(t, m, q, s)
		m.Close()
	})
}

func named(name string) Descriptor {
	return Descriptor{ModelID: events.ModelID(name), Path: "/" + name, ResidencyMode: events.Persistent}
}

func TestManagerLoadsJoin(t *testing.T) {
	simulate(t, 0, func(t *testing.T, m *Manager, q *quick, s *story) {
		errs := make(chan error, 5)
		for range 5 {
			go func() { _, err := m.Load(context.Background(), named("a")); errs <- err }()
		}
		for range 5 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if q.loads.Load() != 1 {
			t.Errorf("%d loads", q.loads.Load())
		}
	})
}

func TestManagerFailedLoadFailsAllThatJoined(t *testing.T) {
	simulate(t, 0, func(t *testing.T, m *Manager, q *quick, s *story) {
		q.fail = errors.New("no memory")
		errs := make(chan error, 5)
		for range 5 {
			go func() { _, err := m.Load(context.Background(), named("a")); errs <- err }()
		}
		for range 5 {
			var failed *LoadError
			if err := <-errs; !errors.As(err, &failed) || failed.Reason != "no memory" {
				t.Errorf("error is %v", err)
			}
		}
		if q.loads.Load() != 1 || !reflect.DeepEqual(s.all(), []ModelEvent{LoadFailed{Descriptor: named("a").withDefaults(), Reason: "no memory"}}) {
			t.Errorf("%d loads, told %v", q.loads.Load(), s.all())
		}
	})
}

// Six requests for three models, in turn, take three loads.
func TestManagerBatchesByModel(t *testing.T) {
	simulate(t, 0, func(t *testing.T, m *Manager, q *quick, s *story) {
		order := make(chan string, 6)
		var users sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "a", "b", "c"} {
			users.Go(func() {
				err := m.Model(named(name)).Use(context.Background(), func(context.Context, *Client) error {
					order <- name
					time.Sleep(10 * time.Second)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // they come one after the other
		}
		users.Wait()
		close(order)
		got := ""
		for name := range order {
			got += name
		}
		if got != "aabbcc" || q.loads.Load() != 3 {
			t.Errorf("order %s with %d loads", got, q.loads.Load())
		}
	})
}

// A model that is always in use makes room for another after the hold.
func TestManagerStarvesNobody(t *testing.T) {
	simulate(t, 5*time.Second, func(t *testing.T, m *Manager, q *quick, s *story) {
		ctx, cancel := context.WithCancel(context.Background())
		a := named("a")
		a.Parallel = 3
		var users sync.WaitGroup
		work := func(context.Context, *Client) error { time.Sleep(2 * time.Second); return nil }
		for i := range 3 {
			users.Go(func() {
				time.Sleep(time.Duration(i) * 700 * time.Millisecond)
				for ctx.Err() == nil {
					_ = m.Model(a).Use(ctx, work)
				}
			})
		}
		time.Sleep(20 * time.Second)
		begun := time.Now()
		if err := m.Model(named("b")).Use(ctx, work); err != nil {
			t.Error(err)
		}
		// Patience of 5 s, 2 s until what runs has ended, a load, its own work.
		if took := time.Since(begun); took > 10*time.Second+100*time.Millisecond {
			t.Errorf("it waited %v", took)
		}
		cancel()
		users.Wait()
	})
}

// Two models asked for in turn do not push each other out all the time.
func TestManagerHoldsSwapsBack(t *testing.T) {
	simulate(t, 10*time.Second, func(t *testing.T, m *Manager, q *quick, s *story) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		ended := make(chan int)
		for _, name := range []string{"a", "b"} {
			go func() {
				n := 0
				for m.Model(named(name)).Use(ctx, func(context.Context, *Client) error { time.Sleep(100 * time.Millisecond); return nil }) == nil {
					n++
				}
				ended <- n
			}()
		}
		one, other := <-ended, <-ended
		if loads := q.loads.Load(); loads > 7 || one < 100 || other < 100 {
			t.Errorf("%d loads in a minute for %d and %d uses", loads, one, other)
		}
	})
}

func TestManagerIdleClock(t *testing.T) {
	simulate(t, 0, func(t *testing.T, m *Manager, q *quick, s *story) {
		d := named("a")
		d.ResidencyMode, d.IdleTimeout = events.Dynamic, time.Minute
		p, err := m.Load(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Second)
		err = p.Use(context.Background(), func(context.Context, *Client) error {
			time.Sleep(10 * time.Minute) // in use is not idle, however long
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		if _, ok := m.Current(); !ok {
			t.Fatal("unloaded before its time")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if _, ok := m.Current(); ok || count[Unloaded](s) != 1 {
			t.Errorf("not unloaded in time: %v", s.all())
		}
	})
}

func TestManagerAbandonedLoadMakesRoom(t *testing.T) {
	simulate(t, 0, func(t *testing.T, m *Manager, q *quick, s *story) {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if _, err := m.Load(ctx, named("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		begun := time.Now()
		if _, err := m.Load(context.Background(), named("b")); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it took %v: the load that nobody wanted went on", took)
		}
		if len(s.all()) != 1 {
			t.Errorf("it told %v", s.all())
		}
	})
}

func TestManagerUnloadWhileLoading(t *testing.T) {
	simulate(t, 0, func(t *testing.T, m *Manager, q *quick, s *story) {
		failed := make(chan error, 1)
		go func() { _, err := m.Load(context.Background(), named("a")); failed <- err }()
		synctest.Wait()
		if err := m.Unload(context.Background(), "a", false); err != nil {
			t.Error(err)
		}
		var load *LoadError
		if err := <-failed; !errors.As(err, &load) {
			t.Errorf("error is %v", err)
		}
		if len(s.all()) != 0 {
			t.Errorf("it told %v", s.all())
		}
	})
}

func TestManagerCloseRefusesWhoWaits(t *testing.T) {
	simulate(t, 0, func(t *testing.T, m *Manager, q *quick, s *story) {
		errs := make(chan error, 3)
		for _, name := range []string{"a", "a", "b"} {
			go func() { _, err := m.Load(context.Background(), named(name)); errs <- err }()
		}
		synctest.Wait()
		m.Close()
		for range 3 {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("error is %v", err)
			}
		}
	})
}

func TestManagerCrashWhileDraining(t *testing.T) {
	simulate(t, 0, func(t *testing.T, m *Manager, q *quick, s *story) {
		used := make(chan error, 1)
		began := make(chan struct{})
		go func() {
			used <- m.Model(named("a")).Use(context.Background(), func(ctx context.Context, _ *Client) error {
				close(began)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		<-began
		unloaded := make(chan error, 1)
		go func() { unloaded <- m.Unload(context.Background(), "a", false) }()
		synctest.Wait()
		m.do(func() { m.proc.cancel(fmt.Errorf("%w: of something", errDied)) })
		var crash *CrashError
		if err := <-used; !errors.As(err, &crash) {
			t.Errorf("error is %v", err)
		}
		if err := <-unloaded; err != nil || count[Crashed](s) != 1 || count[Unloaded](s) != 0 {
			t.Errorf("unload: %v; told %v", err, s.all())
		}
	})
}
