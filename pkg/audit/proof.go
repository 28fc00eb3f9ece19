package audit

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"correx/pkg/events"
)

// Formats of files.
const (
	FormatProof     = "correx proof 1"
	FormatExtension = "correx extension 1"
)

// A Proof shows that a record is among the first Through of a stream, to whoever
// has a checkpoint through there. It carries the record, and no word of its own
// is believed.
type Proof struct {
	Format  string `json:"format"`
	Event   Record `json:"event"`
	Through uint64 `json:"through"` // of the checkpoint: the tree's size
	Path    []Hash `json:"path"`    // from the leaf upwards
}

// A Record is an [Event] as JSON. Of texts that are no UTF-8 the base64 stands
// for them.
type Record struct {
	Seq     uint64    `json:"seq"`
	Time    time.Time `json:"time"`
	Subject Text      `json:"subject"`
	Headers []Field   `json:"headers,omitempty"`
	Body    Text      `json:"body"`
}

// A Field is one header with its values.
type Field struct {
	Name   Text   `json:"name"`
	Values []Text `json:"values"`
}

// A Text is bytes that are mostly text. In JSON it is a string, or an object
// {"base64": …} for what is no UTF-8.
type Text []byte

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string][]byte{"base64": t})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil {
		*t = Text(s)
		return nil
	}
	var o struct {
		Base64 []byte `json:"base64"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return fmt.Errorf("neither a string nor {\"base64\": …}")
	}
	*t = o.Base64
	return nil
}

// RecordOf is e as JSON has it.
func RecordOf(e Event) Record {
	r := Record{Seq: e.Seq, Time: e.Time.UTC(), Subject: Text(e.Subject), Body: e.Data}
	for _, name := range appendNames(nil, e.Header) {
		f := Field{Name: Text(name)}
		for _, v := range e.Header[name] {
			f.Values = append(f.Values, Text(v))
		}
		r.Headers = append(r.Headers, f)
	}
	return r
}

// Stored is the record as a stream has it.
func (r Record) Stored() Event {
	e := Event{Seq: r.Seq, Time: r.Time, Subject: string(r.Subject), Data: r.Body, Header: map[string][]string{}}
	for _, f := range r.Headers {
		for _, v := range f.Values {
			e.Header[string(f.Name)] = append(e.Header[string(f.Name)], string(v))
		}
	}
	return e
}

// Prove returns the proof of e; events are the hashes of all records from the
// first through the checkpoint.
func Prove(e Event, all []Hash) (Proof, error) {
	n := uint64(len(all))
	if e.Seq == 0 || e.Seq > n {
		return Proof{}, fmt.Errorf("prove event %d: it is not among the first %d", e.Seq, n)
	}
	var h Hasher
	if h.Event(e) != all[e.Seq-1] {
		return Proof{}, fmt.Errorf("prove event %d: its hash is another", e.Seq)
	}
	return Proof{FormatProof, RecordOf(e), n, inclusion(e.Seq-1, leaves(all))}, nil
}

// Check reports why p does not show that its record is in c's prefix. That c is
// to be believed is for [Check] to say.
func (p Proof) Check(c events.AuditCheckpoint) error {
	if p.Format != FormatProof {
		return fmt.Errorf("check proof: format is %q, not %q", p.Format, FormatProof)
	}
	if p.Through != c.Through {
		return fmt.Errorf("check proof: it is for the checkpoint through %d, this one is through %d", p.Through, c.Through)
	}
	root, err := ParseHash(c.Root)
	if err != nil {
		return fmt.Errorf("check proof: checkpoint has no root: %w", err)
	}
	e := p.Event.Stored()
	var h Hasher
	got, err := climb(e.Seq-1, c.Through, Leaf(h.Event(e)), p.Path)
	if err != nil {
		return fmt.Errorf("check proof of event %d: %w", e.Seq, err)
	}
	if got != root {
		return fmt.Errorf("check proof of event %d: it leads to another root than the checkpoint's: the event is not in it as it stands here", e.Seq)
	}
	return nil
}

// An Extension shows that one checkpoint's prefix begins with another's.
type Extension struct {
	Format  string `json:"format"`
	From    uint64 `json:"from"`    // what the earlier one is through
	Through uint64 `json:"through"` // the later one
	Path    []Hash `json:"path"`
}

// Extend returns the extension from the first so many records to all of them.
func Extend(from uint64, all []Hash) (Extension, error) {
	n := uint64(len(all))
	if from == 0 || from > n {
		return Extension{}, fmt.Errorf("extend checkpoint through %d: not within the first %d", from, n)
	}
	return Extension{FormatExtension, from, n, consistency(from, leaves(all), true)}, nil
}

// Check reports why x does not lead from the one checkpoint to the other.
func (x Extension) Check(from, to events.AuditCheckpoint) error {
	if x.Format != FormatExtension {
		return fmt.Errorf("check extension: format is %q, not %q", x.Format, FormatExtension)
	}
	if x.From != from.Through || x.Through != to.Through {
		return fmt.Errorf("check extension: it leads from %d to %d, the checkpoints are through %d and %d", x.From, x.Through, from.Through, to.Through)
	}
	if !Of(from).Is(Of(to)) {
		return fmt.Errorf("check extension: the checkpoints are of %s and %s", Of(from), Of(to))
	}
	first, err := ParseHash(from.Root)
	if err != nil {
		return fmt.Errorf("check extension: %w", err)
	}
	second, err := ParseHash(to.Root)
	if err != nil {
		return fmt.Errorf("check extension: %w", err)
	}
	if err := extends(x.From, x.Through, first, second, x.Path); err != nil {
		return fmt.Errorf("check extension from %d to %d: %w", x.From, x.Through, err)
	}
	return nil
}

func leaves(all []Hash) []Hash {
	l := make([]Hash, len(all))
	for i, h := range all {
		l[i] = Leaf(h)
	}
	return l
}
