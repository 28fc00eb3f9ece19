package events

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Raw is a JSON value kept as text, never through map[string]any, which ruins
// integers above 2^53 and forgets the order of keys. Insignificant white space
// is dropped when a value enters an envelope; every other byte stays: spelling
// of numbers, escapes, order of keys.
type Raw []byte

// MarshalJSON returns the text itself; an empty Raw is null.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps a copy of the text, without insignificant white space.
func (r *Raw) UnmarshalJSON(b []byte) error {
	var buf bytes.Buffer
	if err := json.Compact(&buf, b); err != nil {
		return err
	}
	*r = buf.Bytes()
	return nil
}

// Object reports why r is not a JSON object, or nil when it is one.
func (r Raw) Object() error {
	t := bytes.TrimSpace(r)
	if !json.Valid(t) {
		return fmt.Errorf("is not valid JSON")
	}
	if len(t) == 0 || t[0] != '{' {
		return fmt.Errorf("is not a JSON object")
	}
	return nil
}

func (r Raw) String() string { return string(r) }

// marshal is json.Marshal without the escaping of <, > and &, which would alter
// a Raw.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
