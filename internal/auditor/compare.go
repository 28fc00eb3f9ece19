package auditor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"correx/pkg/audit"
)

// Compare holds each record of a database against the stream, up to where the
// database is, and what the database says of them all. It stops at the first that
// differs. The error is of reading.
func Compare(ctx context.Context, stream Source, db *Database, progress func(done, last uint64)) (Result, error) {
	id := db.Identity()
	r := Result{Stream: id.Stream, Created: id.Created.UTC().Format("2006-01-02T15:04:05.000000000Z"), From: 1, Findings: []Finding{}}
	if !id.Is(stream.Identity()) {
		r.Findings = append(r.Findings, Finding{Kind: Foreign, Detail: fmt.Sprintf("the database was made of %s, this is %s", id, stream.Identity())})
		return r, nil
	}
	last, err := stream.Last(ctx)
	if err != nil {
		return r, fmt.Errorf("compare: %w", err)
	}
	p := &pair{stream: stream, db: db, state: audit.Begin(id), last: db.s.At().Seq, progress: progress}
	if err := p.run(ctx, min(p.last, last)); err != nil {
		return r, fmt.Errorf("compare: %w", err)
	}
	if p.found == nil && last < p.last {
		p.found = &Finding{Kind: Missing, Seq: last + 1, Through: p.last, Detail: fmt.Sprintf("the stream ends at %d: it has lost its end, of which the database may be the only copy", last)}
	}
	if p.found == nil && (db.Says().Chain != p.state.Chain || db.Says().Tree.Root() != p.state.Tree.Root()) {
		p.found = &Finding{Kind: Damaged, Detail: "all records are the stream's, but meta (chain_sha256, tree_peaks) says another of them; `projector rebuild` makes it anew"}
	}
	if p.found != nil {
		r.Findings = append(r.Findings, *p.found)
	}
	r.Through, r.Chain, r.Root = p.state.Tree.Size(), p.state.Chain.String(), p.state.Tree.Root().String()
	return r, nil
}

// A pair is a pass over both.
type pair struct {
	stream   Source
	db       *Database
	state    audit.State
	last     uint64 // where the database says it ends
	progress func(done, last uint64)
	found    *Finding
}

// run reads the stream beside the database.
func (p *pair) run(ctx context.Context, through uint64) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	records := make(chan hashed, 256)
	var read error
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(records)
		var h audit.Hasher
		read = p.stream.Each(inner, 1, through, func(e Entry) error {
			content := h.Content(e.Subject, e.Header, e.Data)
			select {
			case records <- hashed{e.Seq, e.Subject, content, audit.Placed(e.Seq, e.Time, content)}:
				return nil
			case <-inner.Done():
				return inner.Err()
			}
		})
	})
	err := p.compare(ctx, records, through)
	cancel()
	reader.Wait()
	if errors.Is(err, errEnough) {
		return nil
	}
	if read != nil && !errors.Is(read, context.Canceled) {
		return read
	}
	if size := p.state.Tree.Size(); err == nil && ctx.Err() == nil && p.found == nil && size < through {
		p.found = &Finding{Kind: Missing, Seq: size + 1, Through: through, Detail: "the stream has none of them. The database may have the only copy"}
	}
	return errors.Join(err, ctx.Err())
}

type hashed struct {
	seq            uint64
	subject        string
	content, event audit.Hash
}

func (p *pair) compare(ctx context.Context, records <-chan hashed, through uint64) error {
	var h audit.Hasher
	next := uint64(1)
	err := p.db.Each(ctx, 1, 1<<62, func(e Entry) error {
		if e.Seq > through && next > through {
			if e.Seq > p.last {
				return p.stop(Finding{Kind: Inserted, Seq: e.Seq, Subject: e.Subject, Detail: fmt.Sprintf("the database says that it ends at %d", p.last)})
			}
			return nil // the stream is at its end
		}
		r, ok := <-records
		switch {
		case !ok:
			return nil // the reader says why
		case r.seq != next:
			return p.stop(Finding{Kind: Missing, Seq: next, Detail: fmt.Sprintf("the stream has none; behind %d comes %d. The database may have the only copy", next-1, r.seq)})
		case e.Seq != next:
			return p.stop(Finding{Kind: Missing, Seq: next, Subject: r.subject, Detail: fmt.Sprintf("the database has none; behind %d comes %d", next-1, e.Seq)})
		case e.Fault != nil || h.Event(e.Event) != r.event:
			return p.differs(ctx, e, r)
		}
		p.state.Add(r.event)
		if p.progress != nil && next&1023 == 0 {
			p.progress(next, through)
		}
		next++
		return nil
	})
	if err == nil && next <= through {
		if r, ok := <-records; ok {
			return p.stop(Finding{Kind: Missing, Seq: next, Subject: r.subject, Detail: fmt.Sprintf("the database has none, though it says that it has all through %d", p.last)})
		}
	}
	return err
}

func (p *pair) stop(f Finding) error {
	p.found = &f
	return errEnough
}

// differs names what became of a record of the stream in the database.
func (p *pair) differs(ctx context.Context, e Entry, r hashed) error {
	_, should, err := contents(ctx, p.stream, e.Seq, window)
	if err != nil {
		return err
	}
	_, does, err := contents(ctx, p.db, e.Seq, window)
	if err != nil {
		return err
	}
	kind := tell(should, does)
	detail := "by the stream, " + kind.says()
	if e.Fault != nil {
		detail += "; " + e.Fault.Error()
	} else if should[0] == does[0] {
		detail = "the database has another time of it"
	}
	return p.stop(Finding{Kind: kind, Seq: e.Seq, Subject: r.subject, Detail: detail + ". `bus audit verify` tells which of the two is to blame"})
}
