package transfer

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"correx/pkg/audit"
	"correx/pkg/events"
)

// Format names the lines of an export, in its head.
const Format = "correx.events.v1"

// A Head is the first line of the export of a whole stream.
type Head struct {
	Format  string    `json:"format"`
	Stream  string    `json:"stream"`
	Created time.Time `json:"created"` // when the stream was made
	First   uint64    `json:"first"`   // sequence of the next line
	Last    uint64    `json:"last"`    // and of the last one; 0: there is none
}

// An End is the last line of the export of a whole stream.
type End struct {
	Records uint64     `json:"records"`
	Chain   audit.Hash `json:"chain_sha256"` // the link at the last record (docs/audit.md)
}

type endLine struct {
	End End `json:"end"`
}

// A Writer writes records as lines, each with its hash.
type Writer struct {
	enc    *json.Encoder
	hasher audit.Hasher
	chain  audit.Hash
	count  uint64
	whole  bool
}

// NewWriter writes lines to out.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{enc: json.NewEncoder(out)}
	w.enc.SetEscapeHTML(false)
	return w
}

// Begin writes the head of a whole stream's first records, up to last.
func (w *Writer) Begin(stream audit.Identity, last uint64) error {
	w.whole, w.chain = true, audit.Genesis(stream)
	h := Head{Format: Format, Stream: stream.Stream, Created: stream.Created.UTC(), First: 1, Last: last}
	if last == 0 {
		h.First = 0
	}
	return w.enc.Encode(h)
}

// Write writes one record.
func (w *Writer) Write(r events.Record) error {
	hash := w.hasher.Event(audit.Event{Seq: r.Seq, Time: r.Time, Subject: r.Subject, Header: r.Header, Data: r.Data})
	w.chain, w.count = audit.Link(w.chain, hash), w.count+1
	if w.whole && r.Seq != w.count {
		return fmt.Errorf("export record %d: %d should come next", r.Seq, w.count)
	}
	l := LineOf(r)
	l.SHA256 = hash.String()
	return w.enc.Encode(l)
}

// Finish writes the end, if there was a head.
func (w *Writer) Finish() error {
	if !w.whole {
		return nil
	}
	return w.enc.Encode(endLine{End{w.count, w.chain}})
}
