package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"correx/pkg/events"
)

// A narrowing is what a schema is held to besides. An empty list says nothing.
type narrowing struct {
	operations []string // of a property operation, which is one of several
	paths      []string // of a property path, which is a text
}

// narrowed is the schema of a tool's parameters held to n, and without what may be
// left out: a small model fills in whatever there is. It is the schema itself
// where that is not understood.
func narrowed(schema events.Raw, n narrowing) events.Raw {
	out, ok, err := n.apply(schema)
	if err != nil || !ok {
		return schema
	}
	return out
}

// apply reports whether anything of the schema is left.
func (n narrowing) apply(schema events.Raw) (out events.Raw, ok bool, err error) {
	s, err := readObject(schema)
	if err != nil {
		return nil, false, err
	}
	if branches := s.get("oneOf"); branches != nil {
		return n.branches(s, branches)
	}
	properties, err := readObject(s.get("properties"))
	if err != nil {
		return nil, false, err
	}
	var required []string
	if err := json.Unmarshal(s.get("required"), &required); err != nil {
		return nil, false, fmt.Errorf("required: %w", err)
	}
	properties = slices.DeleteFunc(properties, func(m member) bool { return !slices.Contains(required, m.name) })
	for k, m := range properties {
		switch m.name {
		case "operation":
			properties[k].value, ok = n.operation(m.value)
			if !ok {
				return nil, false, nil
			}
		case "path":
			properties[k].value = n.path(m.value)
		}
	}
	s.set("properties", properties.raw())
	return s.raw(), true, nil
}

// branches applies n to each branch, and leaves out those of which nothing is left.
func (n narrowing) branches(s object, branches events.Raw) (events.Raw, bool, error) {
	var all, left []events.Raw
	if err := json.Unmarshal(branches, &all); err != nil {
		return nil, false, err
	}
	for _, b := range all {
		out, ok, err := n.apply(b)
		if err != nil {
			return nil, false, err
		}
		if ok {
			left = append(left, out)
		}
	}
	if len(left) == 1 {
		return left[0], true, nil
	}
	s.set("oneOf", list(left))
	return s.raw(), len(left) > 0, nil
}

func (n narrowing) operation(value events.Raw) (events.Raw, bool) {
	var v struct {
		Enum []string `json:"enum"`
	}
	if len(n.operations) == 0 || json.Unmarshal(value, &v) != nil || len(v.Enum) == 0 {
		return value, true
	}
	var left []events.Raw
	for _, e := range v.Enum {
		if slices.Contains(n.operations, e) {
			left = append(left, events.Raw(quote(e)))
		}
	}
	return events.Raw(`{"enum":` + string(list(left)) + `}`), len(left) > 0
}

func (n narrowing) path(value events.Raw) events.Raw {
	var v struct {
		Type string `json:"type"`
	}
	if len(n.paths) == 0 || json.Unmarshal(value, &v) != nil || v.Type != "string" {
		return value
	}
	names := make([]events.Raw, len(n.paths))
	for k, p := range n.paths {
		names[k] = events.Raw(quote(p))
	}
	return events.Raw(`{"enum":` + string(list(names)) + `}`)
}

func list(items []events.Raw) events.Raw {
	var b bytes.Buffer
	b.WriteByte('[')
	for k, i := range items {
		if k > 0 {
			b.WriteByte(',')
		}
		b.Write(i)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// An object of JSON whose members keep their order, which is the order in
// which a model writes them.
type object []member

type member struct {
	name  string
	value events.Raw
}

func readObject(text events.Raw) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("%.40s is no object", text)
	}
	var o object
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var m member
		m.name, _ = name.(string) // names are strings
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
	return o, nil
}

func (o object) get(name string) events.Raw {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (o object) set(name string, value events.Raw) {
	for k := range o {
		if o[k].name == name {
			o[k].value = value
		}
	}
}

func (o object) raw() events.Raw {
	var b bytes.Buffer
	b.WriteByte('{')
	for k, m := range o {
		if k > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote(m.name) + ":")
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
