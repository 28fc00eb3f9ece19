package auditor

import (
	"context"
	"fmt"
	"slices"

	"correx/pkg/audit"
	"correx/pkg/events"
)

// A Checkpoint is one with the sequence of the record that holds it; 0: it was
// brought from elsewhere.
type Checkpoint struct {
	Seq uint64
	events.AuditCheckpoint
}

// Checkpoints reads the checkpoints of s and tells those that a trusted key signed
// for it from what is wrong with the others. They come in the order of the log. One
// that does not stand where it was put is both.
func Checkpoints(ctx context.Context, s Source, keys ...string) (good []Checkpoint, bad []Finding, err error) {
	foreign := 0
	var other audit.Identity
	at := map[uint64]uint64{} // what the checkpoint at a sequence is through
	err = s.Checkpoints(ctx, func(e Entry) error {
		c, fault := checkpointOf(e, keys)
		switch {
		case fault != nil:
			bad = append(bad, Finding{Kind: Untrusted, Seq: e.Seq, Subject: e.Subject, Detail: fault.Error()})
			return nil
		case !audit.Of(c).Is(s.Identity()):
			foreign, other = foreign+1, audit.Of(c)
			return nil
		}
		if fault := stands(e.Seq, c, at); fault != nil {
			// What it says is signed and so, wherever it stands.
			bad = append(bad, Finding{Kind: Mismatch, Seq: e.Seq, Subject: e.Subject, Detail: fault.Error()})
		}
		at[e.Seq] = c.Through
		good = append(good, Checkpoint{e.Seq, c})
		return nil
	})
	if foreign > 0 {
		bad = append([]Finding{{Kind: Foreign, Detail: fmt.Sprintf(
			"%d checkpoints are of %s, this is %s: it is another stream, or was made anew from a copy", foreign, other, s.Identity())}}, bad...)
	}
	return good, bad, err
}

func checkpointOf(e Entry, keys []string) (events.AuditCheckpoint, error) {
	r := events.Decode(e.Seq, e.Time, e.Subject, e.Header, e.Data)
	c, ok := r.Fact.(events.AuditCheckpoint)
	if !ok {
		return c, fmt.Errorf("it is no checkpoint: %w", r.Err)
	}
	return c, audit.Check(c, keys...)
}

// stands reports why a signed checkpoint cannot stand at seq, behind those in at.
func stands(seq uint64, c events.AuditCheckpoint, at map[uint64]uint64) error {
	if c.Through >= seq {
		return fmt.Errorf("it is through %d, and stands before that", c.Through)
	}
	if c.Previous == 0 {
		return nil
	}
	if through, ok := at[c.Previous]; !ok || through > c.Through {
		return fmt.Errorf("it follows the checkpoint at %d, and that is not there: missing, or not where it was", c.Previous)
	}
	return nil
}

// sorted are checkpoints by what they are through, one of each.
func sorted(all []Checkpoint) []Checkpoint {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Checkpoint) int {
		if a.Through < b.Through {
			return -1
		}
		return min(1, int(a.Through-b.Through))
	})
	return slices.CompactFunc(all, func(a, b Checkpoint) bool { return a.Through == b.Through && a.Root == b.Root && a.Chain == b.Chain })
}
