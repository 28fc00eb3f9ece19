package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"correx/pkg/events"
)

// A narrowing is what a schema is held to besides. An empty list says nothing.
type narrowing struct {
	operations []string   // of a property operation, which is one of several
	paths      []string   // of a property path, which is a text
	texts      []string   // of properties content, target and replacement, which are texts
	targets    []string   // of a property target, rather than texts
	lines      bool       // content ends with a newline
	argv       [][]string // what a property argv looks like, which is a list of texts
	named      bool       // argv has one of the paths
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
			properties[k].value = oneOfTexts(m.value, n.paths)
		case "content":
			properties[k].value = oneOfTexts(m.value, n.contents())
		case "target":
			properties[k].value = oneOfTexts(m.value, n.replaceable())
		case "replacement":
			properties[k].value = oneOfTexts(m.value, n.texts)
		case "argv":
			properties[k].value = n.arguments(m.value)
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
	if strings.Join(n.operations, "") == "" || json.Unmarshal(value, &v) != nil || len(v.Enum) == 0 {
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

func (n narrowing) replaceable() []string {
	if len(n.targets) > 0 {
		return n.targets
	}
	return n.texts
}

func (n narrowing) contents() []string {
	if !n.lines {
		return n.texts
	}
	out := make([]string, len(n.texts))
	for k, t := range n.texts {
		out[k] = t + "\n"
	}
	return out
}

// oneOfTexts is the schema of a text held to some.
func oneOfTexts(value events.Raw, texts []string) events.Raw {
	if len(texts) == 0 || typeOf(value) != "string" {
		return value
	}
	return enum(texts)
}

func typeOf(value events.Raw) string {
	var v struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(value, &v) // a schema of another form has none
	return v.Type
}

func enum(texts []string) events.Raw {
	items := make([]events.Raw, len(texts))
	for k, t := range texts {
		items[k] = events.Raw(quote(t))
	}
	return events.Raw(`{"enum":` + string(list(items)) + `}`)
}

// arguments is the schema of a list of texts that looks like the first of n.argv
// that has a path if it should: the program and its options as they are there,
// paths among those that are meant.
func (n narrowing) arguments(value events.Raw) events.Raw {
	var v struct {
		Type  string     `json:"type"`
		Items events.Raw `json:"items"`
	}
	if json.Unmarshal(value, &v) != nil || v.Type != "array" || typeOf(v.Items) != "string" {
		return value
	}
	if len(n.argv) == 0 {
		return value
	}
	like := n.argv[0]
	if k := slices.IndexFunc(n.argv, func(argv []string) bool { return hasPath(argv) == n.named }); k >= 0 {
		like = n.argv[k]
	}
	return n.form(like, v.Items)
}

func hasPath(argv []string) bool { return len(pathsIn(strings.Join(argv[1:], " "))) > 0 }

// form is the schema of a list that looks like argv.
func (n narrowing) form(argv []string, item events.Raw) events.Raw {
	items := make([]events.Raw, len(argv))
	for k, a := range argv {
		switch {
		case k == 0 || strings.HasPrefix(a, "-"):
			items[k] = enum([]string{a})
		case pathLike(a):
			items[k] = oneOfTexts(item, n.paths)
		case isNumber(a):
			items[k] = oneOfTexts(item, numbersIn(n.texts))
		default:
			items[k] = oneOfTexts(item, n.texts)
		}
	}
	return events.Raw(fmt.Sprintf(`{"type":"array","prefixItems":%s,"minItems":%d,"maxItems":%[2]d}`, list(items), len(items)))
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
