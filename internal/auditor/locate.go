package auditor

import (
	"context"
	"errors"
	"fmt"

	"correx/pkg/audit"
)

// window is how many records behind a difference are looked at to tell what
// became of them.
const window = 4096

// A missingError says that a record is not there.
type missingError struct{ seq uint64 }

func (e *missingError) Error() string {
	return fmt.Sprintf("event %d is missing; `bus audit verify` says more", e.seq)
}

// tell says what became of the records from seq on, given what should stand there
// and what does: their contents, in order. The first of each differ, or are the
// same and in another place or time.
func tell[T comparable](should, does []T) Kind {
	switch {
	case len(does) == 0:
		return Missing
	case len(should) == 0:
		return Inserted
	case should[0] == does[0]:
		return Altered // its time
	}
	belongs, elsewhere := false, false
	for _, s := range should[1:] {
		belongs = belongs || s == does[0]
	}
	for _, d := range does[1:] {
		elsewhere = elsewhere || d == should[0]
	}
	switch {
	case belongs && elsewhere:
		return Reordered
	case belongs:
		return Missing
	case elsewhere:
		return Inserted
	}
	return Altered
}

// says is k in words, of one record.
func (k Kind) says() string {
	switch k {
	case Missing:
		return "what was there is gone, and a later record has its place"
	case Inserted:
		return "no such record was there; what was comes later"
	case Reordered:
		return "another record was there; both are in other places"
	}
	return "it is not what was there"
}

// errEnough ends a reading.
var errEnough = errors.New("enough")

// contents are those of the records of s from seq on, at most n.
func contents(ctx context.Context, s Source, seq uint64, n int) (subject string, all []audit.Hash, err error) {
	var h audit.Hasher
	err = s.Each(ctx, seq, seq+uint64(n)-1, func(e Entry) error {
		if len(all) == 0 && e.Seq == seq {
			subject = e.Subject
		}
		all = append(all, h.Content(e.Subject, e.Header, e.Data))
		return nil
	})
	return subject, all, err
}
