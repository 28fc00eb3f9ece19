package auditor

import (
	"fmt"
	"strings"
)

// A Kind is what is wrong.
type Kind string

const (
	Altered   Kind = "altered"   // a record is not what it was
	Missing   Kind = "missing"   // a record is gone
	Inserted  Kind = "inserted"  // a record was not there
	Reordered Kind = "reordered" // a record stands where another was
	Damaged   Kind = "damaged"   // something of these, which cannot be told
	Foreign   Kind = "foreign"   // the checkpoints are of another stream
	Untrusted Kind = "untrusted" // a checkpoint that no trusted key has signed
	Mismatch  Kind = "mismatch"  // a signed checkpoint that cannot stand where it does
	Uncovered Kind = "uncovered" // no checkpoint says anything
)

// A Finding is one thing that is wrong.
type Finding struct {
	Kind    Kind   `json:"kind"`
	Seq     uint64 `json:"seq,omitempty"`     // the record; with Through, the first of several
	Through uint64 `json:"through,omitempty"` // the last of several
	Subject string `json:"subject,omitempty"` // of what stands at Seq
	Detail  string `json:"detail"`
}

func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	switch {
	case f.Through != 0:
		fmt.Fprintf(&b, ": events %d to %d", f.Seq, f.Through)
	case f.Seq != 0:
		fmt.Fprintf(&b, ": event %d", f.Seq)
	}
	if f.Subject != "" {
		fmt.Fprintf(&b, " (%s)", f.Subject)
	}
	return b.String() + ": " + f.Detail
}
