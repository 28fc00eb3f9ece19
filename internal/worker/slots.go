package worker

import (
	"context"
	"time"
)

// slots bounds how many messages are in the hands of handlers, over all
// consumers.
type slots struct{ taken chan struct{} }

func newSlots(n int) *slots { return &slots{make(chan struct{}, n)} }

// free waits until a slot is likely free, and takes none.
func (s *slots) free(ctx context.Context) error {
	select {
	case s.taken <- struct{}{}:
		s.release()
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes a slot; false: there was none for as long as patience.
func (s *slots) take(ctx context.Context, patience time.Duration) bool {
	select {
	case s.taken <- struct{}{}:
		return true
	default:
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case s.taken <- struct{}{}:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

func (s *slots) release() { <-s.taken }
