package streams

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder turns YAML into the JSON that a Go type reads, guided by the type:
// every key must be a json name of it, and durations may be words. It gathers
// every fault, with its line.
type decoder struct{ faults []error }

func (d *decoder) fault(n *yaml.Node, format string, a ...any) {
	d.faults = append(d.faults, fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, a...)))
}

// decode reads n into v, a pointer to a struct.
func decode(n *yaml.Node, v any) error {
	var d decoder
	data := d.value(n, reflect.TypeOf(v).Elem(), "")
	if len(d.faults) > 0 {
		return errors.Join(d.faults...)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	return nil
}

var (
	durationType  = reflect.TypeFor[time.Duration]()
	unmarshalType = reflect.TypeFor[json.Unmarshaler]()
)

// value returns n as JSON for a value of type t; path is for faults.
func (d *decoder) value(n *yaml.Node, t reflect.Type, path string) json.RawMessage {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if isNull(n) {
		return json.RawMessage("null")
	}
	if t.Kind() == reflect.Pointer {
		return d.value(n, t.Elem(), path)
	}
	if t == durationType {
		return d.duration(n, path)
	}
	switch {
	case reflect.PointerTo(t).Implements(unmarshalType):
		return d.leaf(n, t, path)
	case t.Kind() == reflect.Struct:
		return d.object(n, t, path)
	case t.Kind() == reflect.Map:
		return d.mapping(n, t, path)
	case t.Kind() == reflect.Slice:
		return d.list(n, t, path)
	}
	return d.leaf(n, t, path)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (d *decoder) object(n *yaml.Node, t reflect.Type, path string) json.RawMessage {
	fields := jsonFields(t)
	return d.pairs(n, path, func(key *yaml.Node) (reflect.Type, bool) {
		ft, ok := fields[key.Value]
		if !ok {
			names := make([]string, 0, len(fields))
			for f := range fields {
				names = append(names, f)
			}
			sort.Strings(names)
			d.fault(key, "unknown key %q; there are %s", dotted(path, key.Value), strings.Join(names, ", "))
		}
		return ft, ok
	})
}

func (d *decoder) mapping(n *yaml.Node, t reflect.Type, path string) json.RawMessage {
	return d.pairs(n, path, func(*yaml.Node) (reflect.Type, bool) { return t.Elem(), true })
}

// pairs reads a YAML mapping whose values have the types that typeOf says.
func (d *decoder) pairs(n *yaml.Node, path string, typeOf func(key *yaml.Node) (reflect.Type, bool)) json.RawMessage {
	if n.Kind != yaml.MappingNode {
		d.fault(n, "%s must be a mapping", what(path))
		return nil
	}
	out := map[string]json.RawMessage{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		if _, twice := out[key.Value]; twice {
			d.fault(key, "%q stands twice", dotted(path, key.Value))
			continue
		}
		if t, ok := typeOf(key); ok {
			out[key.Value] = d.value(val, t, dotted(path, key.Value))
		}
	}
	return d.marshal(n, out)
}

func (d *decoder) list(n *yaml.Node, t reflect.Type, path string) json.RawMessage {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, "%s must be a list", what(path))
		return nil
	}
	out := make([]json.RawMessage, 0, len(n.Content))
	for i, e := range n.Content {
		out = append(out, d.value(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i)))
	}
	return d.marshal(n, out)
}

func (d *decoder) duration(n *yaml.Node, path string) json.RawMessage {
	var ns int64
	if n.Tag == "!!int" && n.Decode(&ns) == nil {
		return d.marshal(n, ns)
	}
	v, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.fault(n, "%s is %q; use nanoseconds, or a duration such as 30s", what(path), n.Value)
		return nil
	}
	return d.marshal(n, int64(v))
}

// leaf reads a scalar, and tries at once whether t takes it, while the line is
// known.
func (d *decoder) leaf(n *yaml.Node, t reflect.Type, path string) json.RawMessage {
	if n.Kind != yaml.ScalarNode {
		d.fault(n, "%s must be a single value", what(path))
		return nil
	}
	var v any = n.Value
	if slices.Contains([]string{"!!int", "!!float", "!!bool"}, n.Tag) {
		if err := n.Decode(&v); err != nil {
			d.fault(n, "%s is %q: %v", what(path), n.Value, err)
			return nil
		}
	}
	data := d.marshal(n, v)
	if err := json.Unmarshal(data, reflect.New(t).Interface()); err != nil {
		d.fault(n, "%s cannot be %q: %v", what(path), n.Value, err)
	}
	return data
}

func (d *decoder) marshal(n *yaml.Node, v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		// A part that had a fault is no JSON; that fault is on the list already.
		if len(d.faults) == 0 {
			d.fault(n, "%v", err)
		}
		return nil
	}
	return data
}

// jsonFields returns the fields of t by their json names.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range fieldsOf(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	return fields
}

func fieldsOf(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

func dotted(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func what(path string) string {
	if path == "" {
		return "this"
	}
	return path
}
