package transfer

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"correx/pkg/events"
)

// ErrNoCloudEvent is returned for a record that lacks what every CloudEvent has.
var ErrNoCloudEvent = errors.New("lacks one of ce-id, ce-source, ce-type and ce-specversion")

// A CloudEvent is the attributes and the data of one event, as structured JSON of
// CloudEvents 1.0 has them. Besides the envelope's own attributes and extensions
// there are subject (of NATS), sequence (20 digits, so that texts sort as numbers do),
// recordedtime (when it was stored), traceparent, correxnonce, and correxerror for
// a record that does not hold.
type CloudEvent map[string]json.RawMessage

// CloudEventOf turns a record into a CloudEvent, or returns [ErrNoCloudEvent].
func CloudEventOf(r events.Record) (CloudEvent, error) {
	for _, name := range []string{events.HeaderID, events.HeaderSource, events.HeaderType, events.HeaderSpecVersion} {
		if r.Header.Get(name) == "" {
			return nil, fmt.Errorf("record %d: %w", r.Seq, ErrNoCloudEvent)
		}
	}
	c := CloudEvent{}
	for name := range r.Header {
		attribute, ok := strings.CutPrefix(name, "ce-")
		if ok && attributeName(attribute) {
			c.set(attribute, events.HeaderText(r.Header.Get(name)))
		}
	}
	for attribute, name := range map[string]string{"traceparent": events.HeaderTraceparent, "correxnonce": "correx-nonce"} {
		if v := r.Header.Get(name); v != "" {
			c.set(attribute, v)
		}
	}
	c.set("subject", r.Subject)
	c.set("sequence", fmt.Sprintf("%020d", r.Seq))
	c.set("recordedtime", r.Time.UTC().Format(time.RFC3339Nano))
	if r.Err != nil {
		c.set("correxerror", r.Err.Error())
	}
	if utf8.Valid(r.Data) && json.Valid(r.Data) {
		c.set("datacontenttype", "application/json")
		c["data"] = r.Data
	} else {
		c.set("datacontenttype", "application/octet-stream")
		c.set("data_base64", base64.StdEncoding.EncodeToString(r.Data))
	}
	return c, nil
}

func (c CloudEvent) set(attribute, value string) {
	c[attribute], _ = json.Marshal(value) // a text always encodes
}

// attributeName reports whether CloudEvents allows s: lower case and digits. The
// names of data are not for extensions.
func attributeName(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && s != "data"
}
