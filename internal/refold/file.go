package refold

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"correx/internal/leader"
	"correx/internal/transfer"
	"correx/pkg/events"
)

// A File is a log as lines of JSON, as `bus replay --json` writes them. It has no
// commands, and nobody's key: the signatures of approvals are not checked.
type File struct {
	records []events.Record
}

// errNoEnvelope is why a record does not hold that is no fact.
var errNoEnvelope = errors.New("carries no ce-id header: it is no fact of Correx")

// ReadFile reads a whole log. Lines without a sequence, such as the head of an
// export, are passed over. An error names the line.
func ReadFile(in io.Reader) (*File, error) {
	var f File
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		var l transfer.Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w; `bus replay --json` writes such files", n, err)
		}
		if l.Seq == 0 {
			continue
		}
		if want := f.last() + 1; l.Seq != want {
			return nil, fmt.Errorf("line %d: record %d follows %d; a whole log is needed, from the first record on", n, l.Seq, want-1)
		}
		e, err := l.Event()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		r := events.Decode(e.Seq, e.Time, e.Subject, events.Header(e.Header), e.Data)
		if r.Err == nil && r.Header.Get(events.HeaderID) == "" {
			r.Fact, r.Err = nil, errNoEnvelope
		}
		f.records = append(f.records, r)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after record %d: %w", f.last(), err)
	}
	return &f, nil
}

func (f *File) last() uint64 { return uint64(len(f.records)) }

// Last returns the sequence of the last record.
func (f *File) Last(context.Context) (uint64, error) { return f.last(), nil }

// Each implements [Source].
func (f *File) Each(ctx context.Context, filter string, from, through uint64, fn func(events.Record) error) error {
	for _, r := range f.records[min(max(from, 1)-1, f.last()):min(through, f.last())] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if leader.Matches(filter, r.Subject) {
			if err := fn(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// Command implements [Source]: none is at hand.
func (f *File) Command(context.Context, events.CommandID) (events.Wish, bool, error) {
	return events.Wish{}, false, nil
}
