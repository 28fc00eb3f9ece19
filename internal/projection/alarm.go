package projection

import (
	"errors"
	"fmt"
	"time"

	"github.com/mattn/go-sqlite3"

	"correx/internal/eventlog"
)

// Alarms: the log and the database do not belong together. None of them is
// skipped over; a person decides.
var (
	ErrForeignStream  = errors.New("the database is of another stream")
	ErrShrunkenStream = errors.New("the stream ends before the database does")
	ErrChangedRecord  = errors.New("the stream has another record where the database ends")
	ErrGap            = errors.New("records are missing from the stream")
	ErrSchema         = errors.New("the database has another schema")
	ErrDamaged        = errors.New("the file is damaged, or no database")
)

// An AlarmError says which alarm was raised (errors.Is tells), on what grounds,
// and what a person can do about it.
type AlarmError struct {
	Alarm  error
	Detail string
	Remedy string
}

func (e *AlarmError) Error() string {
	return fmt.Sprintf("alarm: %v: %s; %s", e.Alarm, e.Detail, e.Remedy)
}

func (e *AlarmError) Unwrap() error { return e.Alarm }

const rebuild = "if the stream is the right one, `projector rebuild` makes the database anew from it"

func foreignStream(have, want Identity) error {
	return &AlarmError{ErrForeignStream,
		fmt.Sprintf("it was made from %s, this is %s", have, want),
		"connect to the stream it was made from, or name another file with --db; " + rebuild}
}

func shrunkenStream(at, last uint64) error {
	return &AlarmError{ErrShrunkenStream,
		fmt.Sprintf("the database has applied sequence %d, the stream's last is %d", at, last),
		"the store has lost records: keep the database, which may be their only copy, and let `bus audit verify` say what is gone; " + rebuild}
}

func changedRecord(at uint64, why string) error {
	return &AlarmError{ErrChangedRecord,
		fmt.Sprintf("at sequence %d %s", at, why),
		"the store was restored or damaged: keep the database, which may have what was lost, and let `projector verify` name the first record that differs; " + rebuild}
}

func gap(at, got uint64) error {
	comes := fmt.Sprintf("comes %d", got)
	if got == 0 {
		comes = "comes nothing, though the stream has been there"
	}
	return &AlarmError{ErrGap,
		fmt.Sprintf("behind sequence %d %s", at, comes),
		"the store has lost records, which cannot be skipped: restore the stream from a copy; `bus audit verify` names what is missing"}
}

// damaged makes an alarm of SQLite's word that a file is not what it should be.
func damaged(err error) error {
	var code sqlite3.Error
	if errors.As(err, &code) && (code.Code == sqlite3.ErrNotADB || code.Code == sqlite3.ErrCorrupt) {
		return &AlarmError{ErrDamaged, err.Error(), rebuild}
	}
	return err
}

// otherSchema is of a database that cannot be migrated.
func otherSchema(path, have string) error {
	return &AlarmError{ErrSchema,
		fmt.Sprintf("%s has %q, this program writes %q, and there is no way from the one to the other", path, have, schemaName()),
		"use the program that made it, or let `projector rebuild` make the database anew"}
}

func newerSchema(path string, have int) error {
	return &AlarmError{ErrSchema,
		fmt.Sprintf("%s has version %d, which a newer program wrote; this one knows versions up to %d", path, have, SchemaVersion),
		"use a program as new as that one, or name another file with --db; `projector rebuild` makes the database anew for this one"}
}

func olderSchema(path string, have int) error {
	return &AlarmError{ErrSchema,
		fmt.Sprintf("%s has version %d, this program reads %d", path, have, SchemaVersion),
		"start `projector` on it, which brings it to that version, or let `projector rebuild` make it anew"}
}

// alarmOf makes an alarm of what the log itself noticed while it was followed.
func alarmOf(err error) error {
	var missing *eventlog.GapError
	var foreign *eventlog.ForeignStreamError
	var shrunk *eventlog.ShrunkError
	var rewritten *eventlog.RewrittenError
	switch {
	case errors.As(err, &missing):
		return gap(missing.Want-1, missing.Got)
	case errors.As(err, &foreign):
		return foreignStream(Identity{foreign.Stream, foreign.Want}, Identity{foreign.Stream, foreign.Got})
	case errors.As(err, &shrunk):
		return shrunkenStream(shrunk.Next-1, shrunk.Last)
	case errors.As(err, &rewritten):
		return changedRecord(rewritten.Seq, "the stream has another one now")
	}
	return err
}

// An Identity tells one stream from every other: its name and when it was made.
type Identity struct {
	Stream  string
	Created time.Time
}

func (i Identity) String() string {
	return fmt.Sprintf("stream %s of %s", i.Stream, stamp(i.Created))
}

// stamp is how times stand in the database: UTC, and as text in order.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }
