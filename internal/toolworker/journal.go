package toolworker

import (
	"context"
	"fmt"
	"sync"

	"correx/internal/claim"
	"correx/pkg/events"
	"correx/pkg/sandbox"
)

// A journal is the sandbox's journal as the claim protocol sees it: by
// aggregate, of which at most one claim touches anything.
type journal struct {
	disk *sandbox.Journal

	mu   sync.Mutex
	open map[events.Aggregate]opened
}

// opened is one entry; disk has it too, unless nothing was begun.
type opened struct {
	entry  sandbox.Entry
	result events.Fact
}

var _ claim.Journal = (*journal)(nil)

// newJournal takes over what a former process left. An entry whose result
// cannot be read is treated as one that has none: it is rolled back.
func newJournal(disk *sandbox.Journal, pending []sandbox.Entry) (*journal, []claim.Entry, []error) {
	j := &journal{disk: disk, open: map[events.Aggregate]opened{}}
	var entries []claim.Entry
	var faults []error
	for _, e := range pending {
		o := opened{entry: e}
		if e.State == sandbox.Result {
			f, err := decodeEnd(e.Result)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", e.Key, err))
			}
			o.result = f
		}
		j.open[aggregateOf(e.Key)] = o
		entries = append(entries, o.claim())
	}
	return j, entries, faults
}

func aggregateOf(k sandbox.Key) events.Aggregate {
	return events.Aggregate{Session: k.Session, Kind: events.KindTool, ID: string(k.Invocation)}
}

func keyOf(a events.Aggregate, f events.Fence) sandbox.Key {
	return sandbox.Key{Session: a.Session, Invocation: events.ToolInvocationID(a.ID), Started: f.Started, Nonce: f.Nonce}
}

func (o opened) claim() claim.Entry {
	k := o.entry.Key
	return claim.Entry{
		Aggregate: aggregateOf(k), Fence: events.Fence{Started: k.Started, Nonce: k.Nonce}, Result: o.result,
	}
}

// begins says that a run may write an entry under key.
func (j *journal) begins(e sandbox.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.open[aggregateOf(e.Key)] = opened{entry: e}
}

func (j *journal) find(a events.Aggregate) (opened, bool) {
	j.mu.Lock()
	o, ok := j.open[a]
	j.mu.Unlock()
	return o, ok && j.disk.Has(o.entry.Key)
}

// Entry implements [claim.Journal].
func (j *journal) Entry(a events.Aggregate) (claim.Entry, bool) {
	o, ok := j.find(a)
	if !ok {
		return claim.Entry{}, false
	}
	return o.claim(), true
}

// Undo implements [claim.Journal].
func (j *journal) Undo(_ context.Context, e claim.Entry) (claim.Undone, error) {
	o, _ := j.find(e.Aggregate)
	files, err := j.disk.Rollback(keyOf(e.Aggregate, e.Fence))
	if err != nil {
		return claim.Undone{}, err
	}
	if files == nil {
		files = []events.RecoveredFile{}
	}
	return claim.Undone{Files: files, Effects: sandbox.EffectsOf(o.entry, files)}, nil
}

// Result implements [claim.Journal].
func (j *journal) Result(e claim.Entry, end events.Fact) error {
	body, err := encodeEnd(end)
	if err != nil {
		return fmt.Errorf("journal the end of %s: %w", e.Aggregate, err)
	}
	if err := j.disk.Result(keyOf(e.Aggregate, e.Fence), body); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if o, ok := j.open[e.Aggregate]; ok {
		o.result = end
		j.open[e.Aggregate] = o
	}
	return nil
}

// Forget implements [claim.Journal].
func (j *journal) Forget(e claim.Entry) error {
	err := j.disk.Clear(keyOf(e.Aggregate, e.Fence))
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		delete(j.open, e.Aggregate)
	}
	return err
}

// forgetUnbegun forgets a run that ended without having begun an entry.
func (j *journal) forgetUnbegun(a events.Aggregate) {
	if _, ok := j.find(a); !ok {
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.open, a)
	}
}
