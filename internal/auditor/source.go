package auditor

import (
	"context"

	"correx/pkg/audit"
)

// An Entry is a record as a source has it. Fault is why it cannot be what was
// put there, if that shows without any other copy.
type Entry struct {
	audit.Event
	Fault error
}

// A Source is records in order: a stream, or a database that was made of one.
type Source interface {
	// Identity names the stream that the source is, or says it was made of.
	Identity() audit.Identity
	// Last is the sequence of the last record that ever was there.
	Last(ctx context.Context) (uint64, error)
	// Each calls fn with the records of from ≤ sequence ≤ through that are there.
	Each(ctx context.Context, from, through uint64, fn func(Entry) error) error
	// Checkpoints calls fn with the records that stand where checkpoints do.
	Checkpoints(ctx context.Context, fn func(Entry) error) error
}

// Hashes returns the hashes of the first so many records of s, for proofs. A
// record that is missing is an error.
func Hashes(ctx context.Context, s Source, through uint64) ([]audit.Hash, error) {
	all := make([]audit.Hash, 0, through)
	var h audit.Hasher
	err := s.Each(ctx, 1, through, func(e Entry) error {
		if e.Seq != uint64(len(all))+1 {
			return &missingError{uint64(len(all)) + 1}
		}
		all = append(all, h.Event(e.Event))
		return nil
	})
	if err == nil && uint64(len(all)) < through {
		err = &missingError{uint64(len(all)) + 1}
	}
	return all, err
}

// One returns the record at seq.
func One(ctx context.Context, s Source, seq uint64) (e audit.Event, err error) {
	found := false
	err = s.Each(ctx, seq, seq, func(got Entry) error {
		e, found = got.Event, true
		return nil
	})
	if err == nil && !found {
		err = &missingError{seq}
	}
	return e, err
}
