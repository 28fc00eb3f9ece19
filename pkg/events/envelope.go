package events

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Header is a message's headers, as in NATS.
type Header map[string][]string

// Get returns the first value of key, which is case-sensitive as in NATS.
func (h Header) Get(key string) string {
	if v := h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Header names: CloudEvents 1.0 binary mode, W3C trace context, and the mark
// that the server puts on messages it delivers from a stream.
const (
	HeaderID          = "ce-id"
	HeaderType        = "ce-type"
	HeaderSource      = "ce-source"
	HeaderTime        = "ce-time"
	HeaderSpecVersion = "ce-specversion"
	HeaderDataSchema  = "ce-dataschema"
	HeaderCorrelation = "ce-correlationid"
	HeaderCausation   = "ce-causationid"
	HeaderTraceparent = "traceparent"
	HeaderNatsStream  = "Nats-Stream"
)

// MaxFact is the most bytes that a fact's body may have. EVENTS takes 512 KiB a
// message, headers included.
const MaxFact = 480 << 10

// MaxCommand is the most bytes that a command's body may have.
const MaxCommand = 256 << 10

// ErrTooLarge is returned by [Encode] for a body over [MaxFact].
var ErrTooLarge = errors.New("too large for one message")

// ErrForged is the [Record.Err] of a record that the server itself delivered
// into the stream: somebody had an answer stored under a subject that they may
// not publish to.
var ErrForged = errors.New("carries a Nats-Stream header: a stored answer, not a publication")

// ErrUnreadable is wrapped by the [Record.Err] of a record whose body cannot be
// decoded. Where such a record would have ended something, it does.
var ErrUnreadable = errors.New("body cannot be decoded")

// A Record is one message of EVENTS. Only a record whose Err is nil holds;
// whether it is allowed where it stands is for session.Evolve to say.
type Record struct {
	Seq       uint64 // in EVENTS
	Time      time.Time
	Subject   string
	Aggregate Aggregate
	Header    Header
	Data      []byte
	Fact      Fact  // nil when Err is not
	Err       error // why the record does not hold
}

// A Source says who publishes and why; it fills the envelope of a fact.
type Source struct {
	Name  string // "kernel", "tool-worker/w1"
	Cause string // ce-id of the record that led to this one, if any
}

// Encode returns f as a message. After is the sequence of the aggregate's last
// record; the fact's id is its aggregate and its place behind that record.
func Encode(f Fact, src Source, after uint64, now time.Time) (subject string, h Header, data []byte, err error) {
	subject, err = SubjectOf(f)
	if err != nil {
		return "", nil, nil, err
	}
	data, err = marshal(f)
	if err != nil {
		return "", nil, nil, fmt.Errorf("encode %s: %w", f.FactName(), err)
	}
	if len(data) > MaxFact {
		return "", nil, nil, fmt.Errorf("encode %s: %d bytes, at most %d: %w", f.FactName(), len(data), MaxFact, ErrTooLarge)
	}
	typ, ok := LookupFact(f.FactName())
	if !ok {
		return "", nil, nil, fmt.Errorf("encode %s: not in the table of facts", f.FactName())
	}
	a := AggregateOf(f)
	id := FactID(a, after)
	h = Header{
		HeaderID: {id}, HeaderType: {typ.CEType()}, HeaderSource: {"/correx/" + headerValue(src.Name)},
		HeaderTime: {now.UTC().Format(time.RFC3339Nano)}, HeaderSpecVersion: {"1.0"},
		HeaderDataSchema:  {fmt.Sprintf("correx:%s:%d", f.FactName(), typ.Version)},
		HeaderCorrelation: {string(a.Session)}, HeaderTraceparent: {traceparent(a, id)},
	}
	if src.Cause != "" {
		h[HeaderCausation] = []string{headerValue(src.Cause)}
	}
	return subject, h, data, nil
}

// FactID is the CloudEvents id of the record of a that follows sequence after.
func FactID(a Aggregate, after uint64) string {
	return a.String() + "+" + strconv.FormatUint(after, 10)
}

// traceparent puts all facts of a session into one trace.
func traceparent(a Aggregate, id string) string {
	key := string(a.Session)
	if a.Session == System {
		key = a.String()
	}
	trace, span := sha256.Sum256([]byte("trace "+key)), sha256.Sum256([]byte("span "+id))
	return "00-" + hex.EncodeToString(trace[:16]) + "-" + hex.EncodeToString(span[:8]) + "-01"
}

// headerValue percent-encodes what CloudEvents forbids in a header's value.
func headerValue(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// HeaderText undoes the percent-encoding of an envelope header's value.
func HeaderText(s string) string {
	if t, err := url.PathUnescape(s); err == nil {
		return t
	}
	return s
}

// Decode reads a message of EVENTS. It never fails: what cannot be read, or
// whose body and subject differ, has its reason in Err.
func Decode(seq uint64, stored time.Time, subject string, h Header, data []byte) Record {
	r := Record{Seq: seq, Time: stored, Subject: subject, Header: h, Data: data}
	a, name, route, err := ParseSubject(subject)
	r.Aggregate = a
	if err != nil {
		r.Err = err
		return r
	}
	if h.Get(HeaderNatsStream) != "" {
		r.Err = ErrForged
		return r
	}
	f, err := decodeFact(name, h, data)
	if err != nil {
		r.Err = err
		return r
	}
	if f.Of() != a.Ref() {
		r.Err = fmt.Errorf("body is of %s.%s, subject of %s.%s", f.Of().Session, f.Of().ID, a.Session, a.ID)
		return r
	}
	want := ""
	rt, routed := f.(Routed)
	if routed {
		want = rt.Route()
	}
	if route != want || routed && route == "" {
		r.Err = fmt.Errorf("body is routed to %q, subject to %q", want, route)
		return r
	}
	r.Fact = f
	return r
}

func decodeFact(name FactName, h Header, data []byte) (Fact, error) {
	typ, ok := LookupFact(name)
	if !ok {
		return nil, fmt.Errorf("no fact is called %s", name)
	}
	version := typ.Version
	if ce := h.Get(HeaderType); ce != "" {
		v, err := versionOf(typ, ce)
		if err != nil {
			return nil, err
		}
		version = v
	}
	data, err := upcast(name, version, typ.Version, data)
	if err != nil {
		return nil, err
	}
	f, err := typ.decode(data)
	if err != nil {
		return nil, fmt.Errorf("%w as %s: %w", ErrUnreadable, name, err)
	}
	return f, nil
}

func versionOf(typ FactType, ce string) (int, error) {
	rest, ok := strings.CutPrefix(ce, "correx."+typ.GoName+".v")
	if !ok {
		return 0, fmt.Errorf("ce-type is %q, subject says %s", ce, typ.Name)
	}
	v, err := strconv.Atoi(rest)
	if err != nil || v < 1 {
		return 0, fmt.Errorf("ce-type %q has no version", ce)
	}
	if v > typ.Version {
		return 0, fmt.Errorf("%w: %s has version %d, this program knows up to %d", ErrUnreadable, typ.Name, v, typ.Version)
	}
	return v, nil
}

func decodeInto[T Fact](data []byte) (Fact, error) {
	var f T
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	return f, nil
}

// An upcaster turns a payload of one version into one of the next.
type upcaster func(json.RawMessage) (json.RawMessage, error)

// upcasters holds, for each fact whose payload ever changed, the step from each
// old version to the next. It is empty as long as all payloads are at version 1.
var upcasters = map[FactName]map[int]upcaster{}

func upcast(name FactName, from, to int, data []byte) ([]byte, error) {
	for v := from; v < to; v++ {
		up, ok := upcasters[name][v]
		if !ok {
			return nil, fmt.Errorf("%w: %s, no way from version %d to %d", ErrUnreadable, name, v, v+1)
		}
		next, err := up(data)
		if err != nil {
			return nil, fmt.Errorf("%w: %s, version %d to %d: %w", ErrUnreadable, name, v, v+1, err)
		}
		data = next
	}
	return data, nil
}
