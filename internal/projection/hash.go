package projection

import (
	"correx/pkg/audit"
	"correx/pkg/events"
)

// stored is a record as the stream has it, which is what is hashed.
func stored(r events.Record) audit.Event {
	return audit.Event{Seq: r.Seq, Time: r.Time, Subject: r.Subject, Header: r.Header, Data: r.Data}
}

// hashRecord is the hash of a record (docs/audit.md).
func hashRecord(r events.Record) audit.Hash {
	var h audit.Hasher
	return h.Event(stored(r))
}
