package eventlog

import (
	"errors"
	"fmt"
	"time"

	"correx/internal/leader"
)

var (
	// ErrConflict is returned by [Log.Append] when the aggregate's last record
	// is not the one that was expected. Nothing was stored, and whoever reads
	// the aggregate now finds something new.
	ErrConflict = errors.New("the aggregate has moved on: read it and decide again")

	// ErrUnconfirmed is returned by [Log.Append] when the context ended before
	// an answer came: the fact may stand or not, now or in a moment. Read the
	// aggregate before deciding anything that depends on it.
	ErrUnconfirmed = errors.New("the answer was lost: the fact may stand or not")

	// ErrDenied is returned when the server forbids this role the subject.
	ErrDenied = leader.ErrDenied
)

// A GapError says that records are missing: history has been tampered with, or
// a disk has lost some of it. Nothing that was derived from the log beyond Want
// can be trusted to be complete.
type GapError struct {
	Want uint64 // the sequence that should come next
	Got  uint64 // the sequence that does; 0: none, though the stream has been there
}

func (e *GapError) Error() string {
	if e.Got == 0 {
		return fmt.Sprintf("gap in the event log: the record at sequence %d is gone, and nothing is behind it", e.Want)
	}
	return fmt.Sprintf("gap in the event log: sequence %d should come next and %d does", e.Want, e.Got)
}

// A ForeignStreamError says that the stream is not the one that was opened: it
// was deleted and made again. Sequences mean something else there.
type ForeignStreamError struct {
	Stream    string
	Want, Got time.Time // when it was made
}

func (e *ForeignStreamError) Error() string {
	return fmt.Sprintf("stream %s is another than before: it was made at %s, ours at %s",
		e.Stream, e.Got.Format(time.RFC3339Nano), e.Want.Format(time.RFC3339Nano))
}

// A ShrunkError says that the stream ends before a record that was read from
// it: acknowledged records are lost, and their sequences will be used again.
type ShrunkError struct {
	Stream string
	Last   uint64 // where the stream ends
	Next   uint64 // where the reader is
}

func (e *ShrunkError) Error() string {
	return fmt.Sprintf("stream %s has shrunk: it ends at sequence %d, and %d should come next", e.Stream, e.Last, e.Next)
}

// A RewrittenError says that another record stands where one was read before:
// the stream lost its end and used the sequences again.
type RewrittenError struct {
	Stream string
	Seq    uint64
}

func (e *RewrittenError) Error() string {
	return fmt.Sprintf("stream %s was rewritten: the record at sequence %d is not the one that was read there", e.Stream, e.Seq)
}
