package transfer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"correx/pkg/audit"
	"correx/pkg/events"
)

// A Line is one record as JSON. What JSON cannot say stands in a field of its own
// in base64, beside the readable one, and is what counts.
type Line struct {
	Seq           uint64              `json:"seq"`
	Time          time.Time           `json:"time"` // when it was stored
	Subject       string              `json:"subject"`
	SubjectBase64 *string             `json:"subject_base64,omitempty"` // it is no UTF-8
	Headers       map[string][]string `json:"headers,omitempty"`
	HeadersBase64 map[string][]string `json:"headers_base64,omitempty"` // names and values, if some are no UTF-8
	Body          json.RawMessage     `json:"body"`                     // a string, if it is no JSON
	BodyBase64    *string             `json:"body_base64,omitempty"`    // it is no JSON, or not written as compactly as here
	Error         string              `json:"error,omitempty"`          // why the record does not hold
	SHA256        string              `json:"sha256,omitempty"`         // event hash (docs/audit.md), hex
}

// LineOf is a record as a line, without its hash.
func LineOf(r events.Record) Line {
	l := Line{Seq: r.Seq, Time: r.Time.UTC(), Subject: r.Subject, Headers: r.Header}
	if !utf8.ValidString(r.Subject) {
		l.SubjectBase64 = encoded([]byte(r.Subject))
	}
	if !validHeaders(r.Header) {
		l.HeadersBase64 = make(map[string][]string, len(r.Header))
		for name, values := range r.Header {
			key := *encoded([]byte(name))
			l.HeadersBase64[key] = []string{}
			for _, v := range values {
				l.HeadersBase64[key] = append(l.HeadersBase64[key], *encoded([]byte(v)))
			}
		}
	}
	l.Body, l.BodyBase64 = bodyOf(r.Data)
	if r.Err != nil {
		l.Error = r.Err.Error()
	}
	return l
}

// bodyOf is a body as JSON, and in base64 where the bytes would not come back.
func bodyOf(data []byte) (json.RawMessage, *string) {
	if !utf8.Valid(data) || !json.Valid(data) {
		text, _ := json.Marshal(string(data)) // a text always encodes
		return text, encoded(data)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, data) != nil || !bytes.Equal(compact.Bytes(), data) {
		return data, encoded(data)
	}
	return data, nil
}

func validHeaders(h map[string][]string) bool {
	for name, values := range h {
		if !utf8.ValidString(name) {
			return false
		}
		for _, v := range values {
			if !utf8.ValidString(v) {
				return false
			}
		}
	}
	return true
}

func encoded(b []byte) *string {
	s := base64.StdEncoding.EncodeToString(b)
	return &s
}

// Event is the record that l was made of.
func (l Line) Event() (audit.Event, error) {
	e := audit.Event{Seq: l.Seq, Time: l.Time, Subject: l.Subject, Header: l.Headers, Data: l.Body}
	if l.SubjectBase64 != nil {
		subject, err := base64.StdEncoding.DecodeString(*l.SubjectBase64)
		if err != nil {
			return e, fmt.Errorf("subject_base64: %w", err)
		}
		e.Subject = string(subject)
	}
	if l.BodyBase64 != nil {
		body, err := base64.StdEncoding.DecodeString(*l.BodyBase64)
		if err != nil {
			return e, fmt.Errorf("body_base64: %w", err)
		}
		e.Data = body
	}
	if l.HeadersBase64 == nil {
		return e, nil
	}
	e.Header = make(map[string][]string, len(l.HeadersBase64))
	for key, values := range l.HeadersBase64 {
		name, err := base64.StdEncoding.DecodeString(key)
		if err != nil {
			return e, fmt.Errorf("headers_base64: %w", err)
		}
		e.Header[string(name)] = []string{}
		for _, v := range values {
			value, err := base64.StdEncoding.DecodeString(v)
			if err != nil {
				return e, fmt.Errorf("headers_base64: %w", err)
			}
			e.Header[string(name)] = append(e.Header[string(name)], string(value))
		}
	}
	return e, nil
}
