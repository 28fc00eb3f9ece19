package llama

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// maxBackoff bounds the pause before a model is loaded again.
const maxBackoff = 30 * time.Second

// A record is what is remembered of a model's failures.
type record struct {
	failures int       // in a row: crashes, and loads that came to nothing
	until    time.Time // it is not loaded before
	last     string    // why it failed
	halved   bool      // memory did not do for its context
}

// ok forgets the failures: the model was of use.
func (r *record) ok() { r.failures, r.until = 0, time.Time{} }

func (m *Manager) record(d Descriptor) *record {
	key := d.launchKey()
	r := m.records[key]
	if r == nil {
		r = &record{}
		m.records[key] = r
	}
	return r
}

// failure counts one. It returns what to add to the reason when that was one too
// many.
func (m *Manager) failure(d Descriptor, why string, now time.Time) string {
	r := m.record(d)
	r.failures++
	r.last = why
	if r.failures < m.cfg.BreakAfter {
		r.until = now.Add(min(m.cfg.Backoff<<min(r.failures-1, 16), maxBackoff))
		return ""
	}
	r.until = now.Add(m.cfg.BreakFor)
	return fmt.Sprintf("; it failed %d times in a row and is not tried again for %s", r.failures, m.cfg.BreakFor)
}

// resting returns why a model is not even waited for: it failed too often, and
// the time for another try has not come.
func (m *Manager) resting(d Descriptor, now time.Time) error {
	r := m.record(d)
	if r.failures < m.cfg.BreakAfter || !now.Before(r.until) {
		return nil
	}
	return &LoadError{Model: d.ModelID, Err: ErrResting, Reason: fmt.Sprintf("it failed %d times in a row and is tried again in %s; the last time: %s",
		r.failures, r.until.Sub(now).Round(time.Millisecond), r.last)}
}

// refuse tells those who wait for a model that rests.
func (m *Manager) refuse(now time.Time) {
	m.waiting = slices.DeleteFunc(m.waiting, func(t *ticket) bool {
		err := m.resting(t.desc, now)
		if err != nil {
			t.out <- grant{err: err}
		}
		return err != nil
	})
}

// next loads for whoever waits longest, unless that model has to wait after a
// failure: then others go first. It returns when to look again.
func (m *Manager) next(now time.Time) (again time.Time) {
	for _, t := range m.waiting {
		until := m.record(t.desc).until
		if !now.Before(until) {
			m.load(t.desc)
			return time.Time{}
		}
		if again.IsZero() || until.Before(again) {
			again = until
		}
	}
	return again
}

// bring launches d, and once more with half the context if memory does not do.
// It runs outside the goroutine that owns the state.
func (m *Manager) bring(ctx context.Context, d Descriptor, halved bool) (*Process, error) {
	half, can := d.smaller()
	if halved && can {
		return m.launch(ctx, half)
	}
	p, err := m.launch(ctx, d)
	var failed *LoadError
	if !errors.As(err, &failed) || !failed.OutOfMemory || !can || ctx.Err() != nil {
		return p, err
	}
	m.cfg.Logger.Warn("memory does not do for the model's context; trying with half of it",
		slog.String("model", string(d.ModelID)), slog.Int("context_size", half.ContextSize))
	return m.launch(ctx, half)
}
