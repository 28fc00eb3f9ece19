package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"correx/pkg/events"
)

const (
	maxSchema = 32 << 10 // bytes
	maxDepth  = 12
	// maxText is how long a text a model may write, as in the tools of one's own:
	// grammars of longer repetitions are refused by those who make them.
	maxText = 2000
)

// simplify turns the schema of a tool's input into one that the kernel can check
// and that a model can be held to: references are inlined, properties stand in a
// fixed order with the required ones first, texts are bounded, objects that list
// their properties have no others, and what is left out would only have refused
// more. Whatever holds against it holds against the original as far as its shape
// goes; the server judges the rest.
func simplify(input any) (events.Raw, *jsonschema.Resolved, error) {
	root, ok := input.(map[string]any)
	if !ok {
		return nil, nil, errors.New("the schema of its input is no object")
	}
	if t, has := root["type"]; has && t != "object" {
		return nil, nil, fmt.Errorf("its input is of type %v, not object", t)
	}
	root = maps.Clone(root)
	root["type"] = "object"
	if _, ref := root["$ref"]; !ref && root["properties"] == nil && root["anyOf"] == nil && root["oneOf"] == nil && root["allOf"] == nil {
		root["properties"] = map[string]any{}
	}
	w := &schemaWriter{root: root}
	if err := w.schema(root, place{closed: true}); err != nil {
		return nil, nil, fmt.Errorf("schema of its input: %w", err)
	}
	raw := events.Raw(w.b.String())
	resolved, err := compile(raw)
	return raw, resolved, err
}

func compile(raw events.Raw) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("schema of its input: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("schema of its input: %w", err)
	}
	return resolved, nil
}

// A schemaWriter writes one schema.
type schemaWriter struct {
	root map[string]any
	b    strings.Builder
}

// A place is where in a schema something stands.
type place struct {
	depth  int
	closed bool     // an object here has no properties but those it lists
	refs   []string // that led here
}

func (p place) below(closed bool) place { return place{p.depth + 1, closed, p.refs} }

func (w *schemaWriter) schema(v any, p place) error {
	if p.depth > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	if w.b.Len() > maxSchema {
		return fmt.Errorf("it is larger than %d KiB", maxSchema>>10)
	}
	if v == true {
		w.b.WriteString("{}")
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("it has %v where a schema must stand", v)
	}
	if ref, ok := m["$ref"].(string); ok {
		return w.reference(ref, p)
	}
	if all, ok := m["allOf"].([]any); ok && len(all) == 1 && m["properties"] == nil {
		return w.schema(all[0], p.below(p.closed))
	}
	return w.object(m, p)
}

// reference writes what a reference names in its place.
func (w *schemaWriter) reference(ref string, p place) error {
	if slices.Contains(p.refs, ref) {
		return fmt.Errorf("%q leads back to itself, which cannot be bounded", ref)
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return fmt.Errorf("it refers to %q, which is not in it", short([]byte(ref)))
	}
	var at any = w.root
	for part := range strings.SplitSeq(path, "/") {
		m, ok := at.(map[string]any)
		if !ok {
			return fmt.Errorf("it refers to %q, which is not there", short([]byte(ref)))
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	p.refs = append(slices.Clip(p.refs), ref)
	return w.schema(at, p.below(p.closed))
}

// object writes a schema's members, those that it knows.
func (w *schemaWriter) object(m map[string]any, p place) error {
	o := members{w: w}
	if err := o.kind(m); err != nil {
		return err
	}
	if text, ok := m["description"].(string); ok {
		o.value("description", visible(text, 300))
	}
	for _, key := range []string{"enum", "const"} {
		if v, ok := m[key]; ok {
			o.value(key, v)
		}
	}
	o.bounds(m)
	var err error
	if _, has := m["properties"].(map[string]any); has {
		err = o.properties(m, p)
	} else {
		err = o.others(m, p)
	}
	if err != nil {
		return err
	}
	return o.end()
}
