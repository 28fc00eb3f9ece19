package auditor

import (
	"context"
	"fmt"

	"correx/pkg/audit"
	"correx/pkg/events"
)

// Options say how to verify.
type Options struct {
	Keys     []string                 // public NKeys that are trusted to sign checkpoints
	Given    []events.AuditCheckpoint // from elsewhere; the source must continue them
	From, To uint64                   // the records to look at; 0: from the first, to the last
	Progress func(done, last uint64)  // may be nil; called now and then
	Says     *audit.State             // what a database says of all its records; nil: nothing
}

// A Result is what was found.
type Result struct {
	Stream      string    `json:"stream"`
	Created     string    `json:"stream_created"`
	From        uint64    `json:"from"`        // the first record that was looked at
	Through     uint64    `json:"through"`     // the last one
	Checkpoints int       `json:"checkpoints"` // that hold
	Covered     uint64    `json:"covered"`     // all up to here is as it was signed
	Uncovered   uint64    `json:"uncovered"`   // looked at, and in no checkpoint yet
	Chain       string    `json:"chain_sha256"`
	Root        string    `json:"root_sha256,omitempty"` // when the first record is among them
	Findings    []Finding `json:"findings"`
}

// OK reports whether nothing is wrong.
func (r Result) OK() bool { return len(r.Findings) == 0 }

// Verify holds s against its checkpoints and against those that are given. It
// stops at the first record that is not as it was: what comes behind it cannot be
// judged. The error is of reading; what is wrong is in the result.
func Verify(ctx context.Context, s Source, o Options) (Result, error) {
	id := s.Identity()
	r := Result{Stream: id.Stream, Created: id.Created.UTC().Format("2006-01-02T15:04:05.000000000Z"), Findings: []Finding{}}
	good, bad, err := Checkpoints(ctx, s, o.Keys...)
	if err != nil {
		return r, fmt.Errorf("verify: read checkpoints: %w", err)
	}
	last, err := s.Last(ctx) // after the checkpoints, which so are about what is there
	if err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	r.Findings = append(r.Findings, bad...)
	given, faults := judge(o.Given, id, o.Keys)
	r.Findings = append(r.Findings, faults...)
	r.Checkpoints = len(good)
	w := newWalk(s, o, last, sorted(append(given, good...)))
	if len(given)+len(good) == 0 && last > 0 && r.OK() {
		r.Findings = append(r.Findings, Finding{Kind: Uncovered, Seq: 1, Through: last,
			Detail: "no checkpoint that can be trusted says anything of them; a projector that runs signs one before long"})
	}
	found, err := w.run(ctx)
	if err != nil {
		return r, fmt.Errorf("verify: %w", err)
	}
	if found != nil {
		r.Findings = append([]Finding{*found}, r.Findings...)
	}
	r.From, r.Through, r.Covered = w.from, w.next-1, w.covered
	r.Uncovered = r.Through - min(r.Through, r.Covered)
	r.Chain = w.state.Chain.String()
	if w.from == 1 {
		r.Root = w.state.Tree.Root().String()
	}
	return r, nil
}

// judge tells which checkpoints from elsewhere can be used.
func judge(given []events.AuditCheckpoint, id audit.Identity, keys []string) (good []Checkpoint, bad []Finding) {
	for _, c := range given {
		switch err := audit.Check(c, keys...); {
		case err != nil:
			bad = append(bad, Finding{Kind: Untrusted, Detail: fmt.Sprintf("the checkpoint through %d that was given: %v", c.Through, err)})
		case !audit.Of(c).Is(id):
			bad = append(bad, Finding{Kind: Foreign, Detail: fmt.Sprintf("the checkpoint through %d that was given is of %s, this is %s", c.Through, audit.Of(c), id)})
		default:
			good = append(good, Checkpoint{0, c})
		}
	}
	return good, bad
}
