package claim_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"correx/pkg/events"
)

// A memoryLog is a log of many aggregates with conditional appends, in memory.
// Records pass through the same encoding as on the wire.
type memoryLog struct {
	mu   sync.Mutex
	seq  uint64
	recs map[events.Aggregate][]events.Record
}

var errConflict = errors.New("conflict")

func (l *memoryLog) read(a events.Aggregate) []events.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]events.Record(nil), l.recs[a]...)
}

// at returns the record at seq, as a consumer delivers it.
func (l *memoryLog) at(a events.Aggregate, seq uint64) events.Record {
	for _, r := range l.read(a) {
		if r.Seq == seq {
			return r
		}
	}
	return events.Record{}
}

func (l *memoryLog) append(f events.Fact, after uint64) (uint64, error) {
	now := time.Now()
	subject, h, data, err := events.Encode(f, events.Source{Name: "sim"}, after, now)
	if err != nil {
		return 0, err
	}
	a := events.AggregateOf(f)
	l.mu.Lock()
	defer l.mu.Unlock()
	var last uint64
	if recs := l.recs[a]; len(recs) > 0 {
		last = recs[len(recs)-1].Seq
	}
	if last != after {
		return 0, errConflict
	}
	l.seq++
	l.recs[a] = append(l.recs[a], events.Decode(l.seq, now, subject, h, data))
	return l.seq, nil
}

// A flaky is the log as one life of one worker has it: slow, and with answers
// and publishes that get lost or arrive later, as long as the weather is bad.
type flaky struct {
	*life
	log *memoryLog
}

var errGone = errors.New("no answer")

// Read implements claim.Log.
func (f flaky) Read(ctx context.Context, a events.Aggregate) ([]events.Record, error) {
	return f.ReadFilter(ctx, a.Filter(), 1, 0)
}

// ReadFilter implements claim.Log.
func (f flaky) ReadFilter(ctx context.Context, filter string, from, through uint64) ([]events.Record, error) {
	f.gate()
	if err := f.sim.delay(ctx, 5*time.Millisecond); err != nil {
		return nil, err
	}
	if f.sim.bad(3) {
		return nil, errGone
	}
	a, _, _, err := events.ParseSubject(filter[:len(filter)-1] + "x")
	if err != nil {
		return nil, err
	}
	var out []events.Record
	for _, r := range f.log.read(a) {
		if r.Seq >= from && (through == 0 || r.Seq <= through) {
			out = append(out, r)
		}
	}
	f.gate()
	return out, nil
}

// First implements claim.Log.
func (f flaky) First(ctx context.Context, a events.Aggregate) (events.Record, error) {
	recs, err := f.ReadFilter(ctx, a.Filter(), 1, 0)
	if err == nil && len(recs) == 0 {
		err = errGone
	}
	if err != nil {
		return events.Record{}, err
	}
	return recs[0], nil
}

// ReadThrough implements claim.Log.
func (f flaky) ReadThrough(ctx context.Context, a events.Aggregate, seq, _ uint64) ([]events.Record, error) {
	return f.ReadFilter(ctx, a.Filter(), 1, seq)
}

// Append implements claim.Log.
func (f flaky) Append(ctx context.Context, fact events.Fact, after uint64, _ string) (uint64, error) {
	f.gate()
	if err := f.sim.delay(ctx, 10*time.Millisecond); err != nil {
		return 0, err
	}
	f.gate()
	switch {
	case f.sim.bad(4): // it never arrives
		return 0, errGone
	case f.sim.bad(4): // it arrives later
		late := f.sim.pause(600 * time.Millisecond)
		f.sim.wg.Go(func() {
			time.Sleep(late)
			_, _ = f.log.append(fact, after)
		})
		return 0, errGone
	}
	seq, err := f.log.append(fact, after)
	f.gate()
	if f.sim.bad(6) { // its answer is lost
		return 0, errGone
	}
	return seq, err
}
