package projection

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"correx/pkg/events"
)

// jsonText is v as a JSONTEXT column has it: no white space, keys of maps in
// order, nothing escaped that need not be. What marshals to null is NULL.
func jsonText(v any) any {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil // only what no record could hold, such as NaN
	}
	if text := string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))); text != "null" {
		return text
	}
	return nil
}

// list is jsonText for what is absent when it is empty.
func list[T any](s []T) any {
	if len(s) == 0 {
		return nil
	}
	return jsonText(s)
}

// raw is a JSON value as it stood.
func raw(r events.Raw) any {
	if len(r) == 0 {
		return nil
	}
	return string(r)
}

// when is a time that may be absent.
func when(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

// maybe is a text that is NULL when it is empty.
func maybe[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// text is b as TEXT, or as a BLOB when it is no text.
func text(b []byte) any {
	if utf8.Valid(b) {
		return string(b)
	}
	return b
}

// headerJSON is an object of lists, names in their order.
func headerJSON(h events.Header, names []string) string {
	b := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(quote(b, name), ':', '[')
		for k, v := range h[name] {
			if k > 0 {
				b = append(b, ',')
			}
			b = quote(b, v)
		}
		b = append(b, ']')
	}
	return string(append(b, '}'))
}
