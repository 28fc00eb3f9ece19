package llama

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Eight callers ask for A and B in turn, on the real llama-server. One load is
// for many, and nobody waits longer than the bound that Manager states.
func TestManagerTakesTurns(t *testing.T) {
	const callers, each = 8, 40
	hold := 250 * time.Millisecond
	m, s := manage(t, func(c *Config) { c.Hold = hold })
	models := []Descriptor{scripted(t, "a"), scripted(t, "b")}
	var (
		mu           sync.Mutex
		wait, use    time.Duration
		waits, total time.Duration
		work         sync.WaitGroup
	)
	for k := range callers {
		work.Go(func() {
			for n := range each {
				asked := time.Now()
				var begun time.Time
				err := m.Model(models[(k+n)%2]).Use(context.Background(), func(ctx context.Context, c *Client) error {
					begun = time.Now()
					got, err := c.Infer(ctx, ask("hi"))
					if err == nil && got.Text != "Done." {
						return fmt.Errorf("answer is %q", got.Text)
					}
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				wait, use = max(wait, begun.Sub(asked)), max(use, time.Since(begun))
				waits, total = waits+begun.Sub(asked), total+time.Since(begun)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	swaps := count[Loaded](s) - 1
	change := longestChange(s)
	bound := hold + callers*use + DefaultStopGrace + change
	t.Logf("%d requests, %d swaps; longest wait %v of at most %v, mean %v; longest use %v, mean %v; longest load %v",
		callers*each, swaps, wait, bound, waits/(callers*each), use, total/(callers*each), change)
	if 4*swaps > callers*each {
		t.Errorf("%d swaps for %d requests", swaps, callers*each)
	}
	if wait > bound {
		t.Errorf("somebody waited %v, the bound is %v", wait, bound)
	}
}

// longestChange is the longest time from the end of one model to the next load.
func longestChange(s *story) (longest time.Duration) {
	var gone time.Time
	for i, e := range s.all() {
		switch e.(type) {
		case Unloaded:
			gone = s.times[i]
		case Loaded:
			if !gone.IsZero() {
				longest = max(longest, s.times[i].Sub(gone))
			}
		}
	}
	return longest
}

// The bound, to the millisecond, in simulated time: three models, each always
// wanted by more callers than it has slots.
func TestManagerBound(t *testing.T) {
	const callers, models = 5, 3
	const hold, used, load = 3 * time.Second, 700 * time.Millisecond, time.Second // a stop takes no time here
	simulate(t, hold, func(t *testing.T, m *Manager, q *quick, s *story) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		defer cancel()
		var mu sync.Mutex
		var longest time.Duration
		var work sync.WaitGroup
		served := make([]int, models)
		for k := range callers * models {
			work.Go(func() {
				for {
					asked := time.Now()
					err := m.Model(named(string(rune('a'+k%models)))).Use(ctx, func(ctx context.Context, _ *Client) error {
						mu.Lock()
						longest = max(longest, time.Since(asked))
						served[k%models]++
						mu.Unlock()
						time.Sleep(used)
						return nil
					})
					if err != nil {
						return
					}
				}
			})
		}
		work.Wait()
		synctest.Wait()
		// Each of the others: its load, its hold, and all of its callers once more.
		// Then its own load and those of its own callers who came before.
		bound := (models-1)*(load+hold+callers*used) + load + hold + callers*used
		t.Logf("longest wait %v of at most %v, %d loads for %v uses", longest, bound, q.loads.Load(), served)
		if longest > bound {
			t.Errorf("somebody waited %v, the bound is %v", longest, bound)
		}
		for k, n := range served {
			if n < 100 {
				t.Errorf("model %d was used %d times in ten minutes", k, n)
			}
		}
	})
}
