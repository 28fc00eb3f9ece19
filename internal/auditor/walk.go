package auditor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"correx/pkg/audit"
)

// A walk is one pass over a source.
type walk struct {
	s    Source
	o    Options
	last uint64 // where the source says it ends

	from, next uint64
	state      audit.State
	whole      bool // state has a tree: the first record was taken in
	hasher     audit.Hasher
	end        uint64

	checkpoints []Checkpoint // those that lie ahead
	prints      []audit.Fingerprint
	begin       uint64 // what prints[0] is of
	covered     uint64
	found       *Finding
}

// newWalk begins at the last checkpoint before o.From, or at the beginning, and
// goes on to the first one that covers o.To.
func newWalk(s Source, o Options, last uint64, all []Checkpoint) *walk {
	w := &walk{s: s, o: o, last: last, from: 1, end: last, state: audit.Begin(s.Identity()), whole: true, checkpoints: all}
	for k, c := range all {
		chain, err := audit.ParseHash(c.Chain)
		if c.Through < o.From && err == nil {
			w.from, w.whole, w.state, w.covered = c.Through+1, false, audit.State{Chain: chain}, c.Through
			w.checkpoints = all[k+1:]
		}
	}
	if o.To != 0 && o.To < last {
		w.end = o.To
		for _, c := range w.checkpoints {
			if c.Through >= o.To && c.Through <= last {
				w.end = c.Through
				break
			}
		}
	}
	w.checkpoints = slices.Clone(w.checkpoints)
	w.next = w.from
	return w
}

func (w *walk) run(ctx context.Context) (*Finding, error) {
	w.expect()
	through := w.end
	if w.o.Says != nil {
		through = math.MaxUint64 // of a database it is wrong when there is more
	}
	err := w.s.Each(ctx, w.from, through, func(e Entry) error { return w.take(ctx, e) })
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if w.found == nil {
		w.finish()
	}
	return w.found, nil
}

// take judges the next record.
func (w *walk) take(ctx context.Context, e Entry) error {
	if e.Seq > w.last && w.next > w.last {
		return w.stop(Finding{Kind: Inserted, Seq: e.Seq, Subject: e.Subject, Detail: fmt.Sprintf("the database says that it ends at %d", w.last)})
	}
	if e.Seq > w.end && w.next > w.end {
		return errEnough
	}
	if w.o.Progress != nil && w.next&1023 == 0 {
		w.o.Progress(w.next-w.from, w.end-w.from+1)
	}
	switch {
	case e.Seq != w.next:
		return w.stop(Finding{Kind: Missing, Seq: w.next, Detail: fmt.Sprintf("there is none; behind %d comes %d", w.next-1, e.Seq)})
	case e.Fault != nil:
		return w.differs(ctx, e, e.Fault.Error())
	}
	content := w.hasher.Content(e.Subject, e.Header, e.Data)
	hash := audit.Placed(e.Seq, e.Time, content)
	if want, ok := w.wanted(e.Seq); ok && want != audit.FingerprintOf(content, hash) {
		return w.differs(ctx, e, "")
	}
	w.state.Chain = audit.Link(w.state.Chain, hash)
	if w.whole {
		w.state.Tree.Add(hash)
	}
	w.next++
	return w.pass()
}

func (w *walk) stop(f Finding) error {
	w.found = &f
	return errEnough
}

// expect reads the fingerprints of the next checkpoint.
func (w *walk) expect() {
	w.prints = nil
	if len(w.checkpoints) == 0 {
		return
	}
	c := w.checkpoints[0]
	prints, err := audit.DecodeFingerprints(c.Fingerprints)
	if err != nil || uint64(len(prints)) > c.Through {
		return // it is signed, and good for what else it says
	}
	w.prints, w.begin = prints, c.Through-uint64(len(prints))+1
}

// wanted is the fingerprint of the record at seq, if one was signed.
func (w *walk) wanted(seq uint64) (audit.Fingerprint, bool) {
	if k := seq - w.begin; seq >= w.begin && k < uint64(len(w.prints)) {
		return w.prints[k], true
	}
	return audit.Fingerprint{}, false
}

// pass holds the state against each checkpoint that ends here.
func (w *walk) pass() error {
	for len(w.checkpoints) > 0 && w.checkpoints[0].Through == w.next-1 {
		c := w.checkpoints[0]
		if c.Chain != w.state.Chain.String() || w.whole && c.Root != w.state.Tree.Root().String() {
			return w.stop(w.unexplained(c))
		}
		w.covered = c.Through
		w.checkpoints = w.checkpoints[1:]
		w.expect()
	}
	return nil
}

// unexplained is a checkpoint that does not match though no fingerprint differs.
func (w *walk) unexplained(c Checkpoint) Finding {
	f := Finding{Kind: Damaged, Seq: w.covered + 1, Through: c.Through,
		Detail: fmt.Sprintf("together they are not what the checkpoint through %d%s says; which of them is to blame it does not tell", c.Through, c.where())}
	if len(w.prints) > 0 && w.begin > f.Seq {
		f.Through = w.begin - 1 // those with fingerprints are as they were
	}
	return f
}

func (c Checkpoint) where() string {
	if c.Seq == 0 {
		return " that was given"
	}
	return fmt.Sprintf(" (event %d)", c.Seq)
}

// differs names the record that is not as it was, and what became of it. Without
// a signed fingerprint a record that is at fault in itself is altered.
func (w *walk) differs(ctx context.Context, e Entry, fault string) error {
	kind, detail := Altered, fault
	if _, ok := w.wanted(e.Seq); ok {
		should := w.ahead(e.Seq)
		_, there, err := contents(ctx, w.s, e.Seq, window+len(should))
		if err != nil {
			return err
		}
		does := make([]uint32, 0, len(there))
		for _, h := range there {
			does = append(does, audit.FingerprintOf(h, h).Content)
		}
		kind = tell(should, does)
		detail = kind.says()
		if kind == Altered && should[0] == does[0] && fault == "" {
			detail = "its content is what it was, its time is not"
		}
		if fault != "" {
			detail += "; " + fault
		}
		if w.begin > w.covered+1 {
			detail += fmt.Sprintf("; of events %d to %d before it nothing is signed that could tell", w.covered+1, w.begin-1)
		}
		detail += fmt.Sprintf(" (by the checkpoint through %d%s)", w.checkpoints[0].Through, w.checkpoints[0].where())
	}
	return w.stop(Finding{Kind: kind, Seq: e.Seq, Subject: e.Subject, Detail: detail})
}

// ahead are the contents that were signed from seq on, as far as they follow each
// other.
func (w *walk) ahead(seq uint64) []uint32 {
	var all []uint32
	next := *w // whose checkpoints are taken off one by one
	for next.expect(); len(next.checkpoints) > 0 && len(all) < window; next.expect() {
		at := seq + uint64(len(all))
		if _, ok := next.wanted(at); ok {
			for _, p := range next.prints[at-next.begin:] {
				all = append(all, p.Content)
			}
		} else if at <= next.checkpoints[0].Through {
			return all
		}
		next.checkpoints = next.checkpoints[1:]
	}
	return all
}

// finish judges what should have come and did not.
func (w *walk) finish() {
	switch {
	case w.next <= w.end:
		w.found = &Finding{Kind: Missing, Seq: w.next, Through: w.end, Detail: "they are gone, though they have been there"}
	case w.end == w.last && len(w.checkpoints) > 0:
		c := w.checkpoints[len(w.checkpoints)-1]
		w.found = &Finding{Kind: Missing, Seq: w.next, Through: c.Through,
			Detail: fmt.Sprintf("it ends at %d, and the checkpoint through %d%s says that there was more", w.last, c.Through, c.where())}
	case w.end == w.last && w.o.Says != nil && w.o.Says.Chain != w.state.Chain:
		w.found = &Finding{Kind: Damaged, Seq: w.covered + 1, Through: w.last,
			Detail: "together they are not what meta says (chain_sha256); `projector verify` names the one, with the stream at hand"}
	}
	if w.found != nil && w.found.Seq == w.found.Through {
		w.found.Through = 0
	}
}
