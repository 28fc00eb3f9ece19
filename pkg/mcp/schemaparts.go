package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// members writes the members of one schema.
type members struct {
	w   *schemaWriter
	any bool
}

func (o *members) key(name string) {
	sep := "{"
	if o.any {
		sep = ","
	}
	o.any = true
	o.w.b.WriteString(sep + text(name) + ":")
}

func (o *members) value(name string, v any) { o.key(name); o.w.b.WriteString(text(v)) }

func (o *members) end() error {
	if !o.any {
		o.w.b.WriteString("{")
	}
	o.w.b.WriteString("}")
	return nil
}

// text is v as JSON; it came from JSON.
func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

var kinds = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

func (o *members) kind(m map[string]any) error {
	t, has := m["type"]
	if !has && m["properties"] != nil {
		t, has = "object", true
	}
	if !has {
		return nil
	}
	all, several := t.([]any)
	if !several {
		all = []any{t}
	}
	for _, k := range all {
		if s, ok := k.(string); !ok || !slices.Contains(kinds, s) {
			return fmt.Errorf("it has the unknown type %s", short([]byte(fmt.Sprint(k))))
		}
	}
	o.value("type", t)
	return nil
}

// bounds writes limits of numbers, texts and lists, those that can be kept to.
func (o *members) bounds(m map[string]any) {
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		n, ok := m[key].(float64)
		if ok && math.Abs(n) < 1<<53 && (m["type"] != "integer" || n == math.Trunc(n)) {
			o.value(key, n)
		}
	}
	for _, key := range []string{"minLength", "minItems"} {
		if n, ok := m[key].(float64); ok && n > 0 && n <= maxText {
			o.value(key, int(n))
		}
	}
	if n, ok := m["maxItems"].(float64); ok && n >= 0 {
		o.value("maxItems", int(min(n, maxText)))
	}
	n, ok := m["maxLength"].(float64)
	switch {
	case ok && n >= 0:
		o.value("maxLength", int(min(n, maxText)))
	case m["type"] == "string" && m["enum"] == nil && m["const"] == nil:
		o.value("maxLength", maxText)
	}
}

// properties writes what an object has, the required ones first, in the order in
// which the server names them. One that is required and not described may be
// anything.
func (o *members) properties(m map[string]any, p place) error {
	all := m["properties"].(map[string]any)
	var required []string
	listed, _ := m["required"].([]any)
	for _, r := range listed {
		if name, ok := r.(string); ok && !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	names := slices.Clone(required)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(required, name) {
			names = append(names, name)
		}
	}
	o.key("properties")
	inner := members{w: o.w}
	for _, name := range names {
		v, described := all[name]
		if !described {
			v = true
		}
		inner.key(name)
		if err := o.w.schema(v, p.below(true)); err != nil {
			return err
		}
	}
	_ = inner.end()
	if len(required) > 0 {
		o.value("required", required)
	}
	if _, said := m["additionalProperties"]; !said && p.closed {
		o.value("additionalProperties", false)
		return nil
	}
	return o.additional(m, p)
}

func (o *members) additional(m map[string]any, p place) error {
	v, has := m["additionalProperties"]
	if !has {
		return nil
	}
	if closed, ok := v.(bool); ok {
		o.value("additionalProperties", closed)
		return nil
	}
	o.key("additionalProperties")
	return o.w.schema(v, p.below(true))
}

// others writes what a schema has that lists no properties.
func (o *members) others(m map[string]any, p place) error {
	if err := o.additional(m, p); err != nil {
		return err
	}
	if items, ok := m["items"]; ok && items != false {
		o.key("items")
		if err := o.w.schema(items, p.below(true)); err != nil {
			return err
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		branches, ok := m[key].([]any)
		if !ok || len(branches) == 0 {
			continue
		}
		o.key(key)
		for i, b := range branches {
			o.w.b.WriteString([]string{"[", ","}[min(i, 1)])
			if err := o.w.schema(b, p.below(true)); err != nil {
				return err
			}
		}
		o.w.b.WriteString("]")
		break
	}
	return nil
}

// pin is what of a tool must stay as it was when it was announced.
func pin(t *sdk.Tool) string {
	return text([]any{t.Name, t.Title, t.Description, t.InputSchema, t.Annotations})
}
