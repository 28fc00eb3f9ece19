package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A reader fills a [Config] from several places and remembers which value came
// from where.
type reader struct {
	places map[string]origin // by key
	faults Faults
}

// An origin is where a value was given.
type origin struct {
	place  string // "correx.yaml:12", "CORREX_NATS", "--nats"
	inFile bool
}

// at says where a node stands.
type at func(*yaml.Node) origin

func (r *reader) fault(key, place, format string, a ...any) {
	r.faults = append(r.faults, Fault{Key: key, Place: place, Text: fmt.Sprintf(format, a...)})
}

// origin says where the value of key, or of what holds it, was given.
func (r *reader) origin(key string) origin {
	for key != "" {
		if p, ok := r.places[key]; ok {
			return p
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return origin{}
}

func configValue(cfg *Config) reflect.Value { return reflect.ValueOf(cfg).Elem() }

// fill sets v, which is what key names, from n.
func (r *reader) fill(n *yaml.Node, v reflect.Value, key string, at at) {
	if n.Kind == yaml.AliasNode { // which could hold itself
		r.fault(key, at(n).place, "is an alias; write the value out")
		return
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return // a key without a value leaves the default
	}
	switch {
	case isLeaf(v.Type()):
		p := reflect.New(v.Type())
		if err := n.Decode(p.Interface()); err != nil {
			r.fault(key, at(n).place, "%s", wrongType(n, v.Type(), err))
			return
		}
		v.Set(p.Elem())
	case v.Kind() == reflect.Struct:
		r.fillStruct(n, v, key, at)
	case v.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			r.fault(key, at(n).place, "must be a list")
			return
		}
		s := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
		for i, e := range n.Content {
			k := fmt.Sprintf("%s[%d]", key, i)
			r.places[k] = at(e)
			r.fill(e, s.Index(i), k, at)
		}
		v.Set(s)
	}
}

func (r *reader) fillStruct(n *yaml.Node, v reflect.Value, key string, at at) {
	if n.Kind != yaml.MappingNode {
		r.fault(key, at(n).place, "must be a section with keys: %s", strings.Join(names(v.Type()), ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		k := join(key, name.Value)
		f, ok := field(v, name.Value)
		switch {
		case !ok:
			r.fault(k, at(name).place, "is not a key; here are: %s", strings.Join(names(v.Type()), ", "))
		case seen[name.Value]:
			r.fault(k, at(name).place, "stands twice")
		default:
			r.places[k] = at(name)
			r.fill(value, f, k, at)
		}
		seen[name.Value] = true
	}
}

// isLeaf reports whether a value is given whole, not key by key.
func isLeaf(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	if p.Implements(reflect.TypeFor[yaml.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct:
		return false
	case reflect.Slice:
		e := t.Elem()
		return e.Kind() != reflect.Struct && !reflect.PointerTo(e).Implements(reflect.TypeFor[yaml.Unmarshaler]())
	}
	return true
}

func join(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

// field finds the field of a struct that a key names.
func field(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if tag := v.Type().Field(i).Tag.Get("yaml"); tag == name && tag != "-" {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// names lists the keys of a struct.
func names(t reflect.Type) []string {
	var s []string
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("yaml"); tag != "-" {
			s = append(s, tag)
		}
	}
	return s
}

// Keys lists every key that a value can be given to, such as "nats.url"; lists
// of sections have one key, as in "models".
func Keys() []string {
	var keys []string
	var walk func(t reflect.Type, key string)
	walk = func(t reflect.Type, key string) {
		if isLeaf(t) || t.Kind() == reflect.Slice {
			keys = append(keys, key)
			return
		}
		for i := range t.NumField() {
			if tag := t.Field(i).Tag.Get("yaml"); tag != "-" {
				walk(t.Field(i).Type, join(key, tag))
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
	slices.Sort(keys)
	return keys
}

// wrongType says what a value should have been.
func wrongType(n *yaml.Node, t reflect.Type, err error) string {
	got := n.Value
	if t.Kind() == reflect.Pointer { // of what may be left out
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return fmt.Sprintf("is %q; write a time with its unit, such as 300ms, 30s, 15m or 1h", got)
	case reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.Unmarshaler]()),
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return strings.TrimPrefix(err.Error(), "yaml: ")
	}
	switch t.Kind() {
	case reflect.Bool:
		return fmt.Sprintf("is %q; write true or false", got)
	case reflect.Int:
		return fmt.Sprintf("is %q; write a whole number", got)
	case reflect.String:
		return "must be a text"
	case reflect.Slice:
		return "must be a list of texts, such as [a, b]"
	}
	return "has a value of the wrong type"
}
