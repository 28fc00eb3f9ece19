package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"correx/pkg/events"
)

// explain says in one line, which is the same every time, how v breaks s. The
// validator's own words depend on the order in which Go walks a map, and what
// decides from them could not be checked again.
func explain(s *jsonschema.Schema, v any) string {
	if faults := faultsOf(s, v, ""); len(faults) > 0 {
		return strings.Join(faults, "; ")
	}
	return "does not fit the schema"
}

func faultsOf(s *jsonschema.Schema, v any, at string) []string {
	if s == nil {
		return nil
	}
	if want := typesOf(s); len(want) > 0 && !slices.ContainsFunc(want, func(t string) bool { return isA(t, v) }) {
		return []string{fmt.Sprintf("%s is %s, not %s", place(at), kindOf(v), strings.Join(want, " or "))}
	}
	switch v := v.(type) {
	case map[string]any:
		return objectFaults(s, v, at)
	case []any:
		var faults []string
		for n, e := range v {
			faults = append(faults, faultsOf(s.Items, e, fmt.Sprintf("%s[%d]", at, n))...)
		}
		if len(faults) > 0 {
			return faults
		}
	}
	return leafFault(s, v, at)
}

func objectFaults(s *jsonschema.Schema, v map[string]any, at string) []string {
	var faults []string
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			faults = append(faults, place(join(at, name))+" is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		switch p, ok := s.Properties[name]; {
		case ok:
			faults = append(faults, faultsOf(p, v[name], join(at, name))...)
		case isFalse(s.AdditionalProperties):
			faults = append(faults, fmt.Sprintf("%s is unknown; there are %s", place(join(at, name)), strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")))
		}
	}
	if len(faults) == 0 && s.Properties == nil {
		return leafFault(s, v, at)
	}
	return faults
}

// leafFault asks the validator about a schema by itself. Where it lists
// alternatives, only that none of them fits is said.
func leafFault(s *jsonschema.Schema, v any, at string) []string {
	text, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	r, err := resolve(events.Raw(text))
	if err != nil {
		return nil // refers to another part of the whole
	}
	err = r.Validate(v)
	switch {
	case err == nil:
		return nil
	case s.AnyOf != nil || s.OneOf != nil || s.AllOf != nil || s.Not != nil || s.If != nil || s.PatternProperties != nil || s.DependentSchemas != nil:
		return []string{place(at) + " fits none of what is allowed"}
	}
	reason := err.Error()
	if k := strings.LastIndex(reason, "validating root: "); k >= 0 {
		reason = reason[k+len("validating root: "):]
	}
	return []string{place(at) + ": " + reason}
}

func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

func isA(t string, v any) bool {
	k := kindOf(v)
	if f, ok := v.(float64); ok {
		return t == "number" || t == "integer" && f == float64(int64(f))
	}
	return t == k
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func isFalse(s *jsonschema.Schema) bool {
	if s == nil || s.Not == nil {
		return false
	}
	text, err := json.Marshal(s.Not)
	return err == nil && (string(text) == "{}" || string(text) == "true")
}

func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

func place(at string) string {
	if at == "" {
		return "the whole"
	}
	return at
}
