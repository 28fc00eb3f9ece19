package eventlog

import (
	"context"
	"errors"
	"sync"
	"time"
)

// clockFor is how long one look at the leader's clock is good for. A clock that
// is set forward in between goes unnoticed for as long.
const clockFor = 5 * time.Second

// clock is what is known of the clock that stamps records.
type clock struct {
	mu    sync.Mutex
	said  time.Time // by the leader
	asked time.Time // when it was asked, by ours: it cannot have answered before
}

// NotAfter returns a time that the leader's clock has not passed yet, at the
// moment of the call: no record that is stored by now is stamped later. The
// leader is asked every five seconds; in between, our own clock counts on.
func (l *Log) NotAfter(ctx context.Context) (time.Time, error) {
	c := &l.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if since := time.Since(c.asked); !c.said.IsZero() && since < clockFor {
		return c.said.Add(since), nil
	}
	asked := time.Now()
	info, err := l.lead.Info(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if info.Now.IsZero() {
		return time.Time{}, errors.New("ask for the leader's clock: the server is too old to say")
	}
	c.said, c.asked = info.Now, asked
	return c.said.Add(time.Since(asked)), nil
}
