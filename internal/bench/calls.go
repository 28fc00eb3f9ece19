package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// inFlight is how many calls are under way at one time.
const inFlight = 64

// calls measures approved echo calls a second. The floor is measured before and
// after, on a server that syncs alike.
func (b *bench) calls(ctx context.Context, sync string) (row, error) {
	f, err := b.newFloor(ctx, sync)
	if err != nil {
		return row{}, err
	}
	defer f.close()
	before, err := f.rate(ctx, inFlight, b.span/2)
	if err != nil {
		return row{}, err
	}
	s, err := b.newSystem(ctx, sync)
	if err != nil {
		return row{}, err
	}
	defer s.close()
	if _, err := s.rate(ctx, 2*time.Second); err != nil { // to warm up
		return row{}, err
	}
	s.stages.reset()
	value, err := s.rate(ctx, b.span)
	if err != nil {
		return row{}, err
	}
	b.explain(s)
	after, err := f.rate(ctx, inFlight, b.span/2)
	if err != nil {
		return row{}, err
	}
	return row{Value: value, Unit: "calls/s", Floor: (before + after) / 2}, nil
}

// rate is completed calls a second with inFlight of them under way.
func (s *system) rate(ctx context.Context, span time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, span+30*time.Second, fmt.Errorf("calls hang"))
	defer cancel()
	var done atomic.Int64
	errs := make(chan error, inFlight)
	var work sync.WaitGroup
	tag := time.Now().UnixNano()
	begin := time.Now()
	for w := range inFlight {
		work.Go(func() {
			for n := 0; time.Since(begin) < span; n++ {
				if err := s.call(ctx, fmt.Sprintf("b%d-%d-%d", tag, w, n)); err != nil {
					errs <- err
					return
				}
				done.Add(1)
			}
		})
	}
	work.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
		return float64(done.Load()) / time.Since(begin).Seconds(), nil
	}
}

// latencyCalls is how many calls the median is of. They and as many rounds of the
// floor take turns, so that what else the machine does is in both.
const (
	latencyCalls = 600
	latencyTurns = 12
)

// latency measures one call at a time, from the request to the visible result.
func (b *bench) latency(ctx context.Context) (row, error) {
	f, err := b.newFloor(ctx, "always")
	if err != nil {
		return row{}, err
	}
	defer f.close()
	s, err := b.newSystem(ctx, "always")
	if err != nil {
		return row{}, err
	}
	defer s.close()
	if _, err := s.rate(ctx, time.Second); err != nil { // to warm up
		return row{}, err
	}
	s.stages.reset()
	var calls, floor []float64
	for range latencyTurns {
		c, err := s.latency(ctx, latencyCalls/latencyTurns)
		if err != nil {
			return row{}, err
		}
		bare, err := f.latency(ctx, latencyCalls/latencyTurns)
		if err != nil {
			return row{}, err
		}
		calls, floor = append(calls, c...), append(floor, bare...)
	}
	b.explain(s)
	return row{Value: median(calls), Unit: "ms", Floor: median(floor)}, nil
}

// latency is how long each of n calls takes, one at a time, in milliseconds.
func (s *system) latency(ctx context.Context, n int) ([]float64, error) {
	tag := time.Now().UnixNano()
	return timed(n, func(k int) error { return s.call(ctx, fmt.Sprintf("l%d-%d", tag, k)) })
}

// explain prints where the time of the calls went, if that was asked for.
func (b *bench) explain(s *system) {
	if b.stages {
		s.stages.print()
	}
}
