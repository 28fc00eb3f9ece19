package projection

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
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

// headerJSON is an object of lists, names in their order. Headers that are not
// all text stand in {"base64": …} as a whole, so that nothing of them is lost.
func headerJSON(h events.Header) string {
	var few [16]string
	names := few[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !utf8.ValidString(name) || !allText(h[name]) {
			return headerBytes(h, names)
		}
	}
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

func allText(values []string) bool {
	for _, v := range values {
		if !utf8.ValidString(v) {
			return false
		}
	}
	return true
}

// headerBytes are headers of which some are no text, each name and value in
// base64. No header can be taken for it, for each has a list.
func headerBytes(h events.Header, names []string) string {
	all := map[string][][]byte{}
	for _, name := range names {
		values := [][]byte{}
		for _, v := range h[name] {
			values = append(values, []byte(v))
		}
		all[base64.StdEncoding.EncodeToString([]byte(name))] = values
	}
	text, err := json.Marshal(map[string]any{"base64": all})
	if err != nil {
		return "{}" // such a map always encodes
	}
	return string(text)
}

// parseHeaders undoes headerJSON.
func parseHeaders(s string) (events.Header, error) {
	var h events.Header
	err := json.Unmarshal([]byte(s), &h)
	if err == nil {
		return h, nil
	}
	var coded struct {
		Base64 map[string][][]byte `json:"base64"`
	}
	if json.Unmarshal([]byte(s), &coded) != nil || coded.Base64 == nil {
		return nil, err
	}
	h = events.Header{}
	for name, values := range coded.Base64 {
		b, err := base64.StdEncoding.DecodeString(name)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			h[string(b)] = append(h[string(b)], string(v))
		}
	}
	return h, nil
}
