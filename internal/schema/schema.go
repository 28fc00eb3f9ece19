// Package schema makes JSON Schemas from the types of pkg/events, and holds
// values against schemas.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"correx/pkg/events"
)

// typeSchemas are the types whose JSON is not what their Go kind suggests.
var typeSchemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[events.Raw]():           {Description: "any JSON value, kept as text"},
	reflect.TypeFor[events.Tier]():          {Type: "string", Enum: []any{"T0", "T1", "T2", "T3", "T4"}},
	reflect.TypeFor[time.Time]():            {Type: "string", Format: "date-time"},
	reflect.TypeFor[time.Duration]():        {Type: "integer", Description: "nanoseconds"},
	reflect.TypeFor[events.ApprovalMode]():  {Type: "string", Enum: []any{"prompt", "auto", "deny"}},
	reflect.TypeFor[events.ApprovalScope](): {Type: "string", Enum: []any{"once", "session"}},
}

// Names returns what [For] knows: every command by its verb, then every fact by
// its name.
func Names() []string {
	var names []string
	for _, c := range events.CommandTypes() {
		names = append(names, string(c.Verb()))
	}
	for _, f := range events.FactTypes() {
		names = append(names, string(f.Name))
	}
	return names
}

// For returns the schema of a command ("tool.approve") or a fact
// ("tool.approved"), as indented JSON. Commands refuse unknown fields; facts
// may have more.
func For(name string) (events.Raw, error) {
	for _, c := range events.CommandTypes() {
		if string(c.Verb()) == name {
			return generate(reflect.TypeOf(c), "command "+name, true)
		}
	}
	if f, ok := events.LookupFact(events.FactName(name)); ok {
		return generate(reflect.TypeOf(f.New()), f.CEType(), false)
	}
	return nil, fmt.Errorf("nothing is called %q; bus schema without a name lists all", name)
}

func generate(t reflect.Type, title string, strict bool) (events.Raw, error) {
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: typeSchemas})
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", title
	if !strict {
		s.AdditionalProperties = nil
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t, err)
	}
	return text, nil
}

// resolved keeps compiled schemas by their text. Offers are few and live long.
var resolved sync.Map

// Validate reports how value breaks the schema, or nil. A schema that cannot be
// used is an error too, which says so.
func Validate(schema, value events.Raw) error {
	r, err := resolve(schema)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if r.Validate(v) == nil {
		return nil
	}
	return errors.New(explain(r.Schema(), v))
}

// Check reports why schema cannot be used.
func Check(schema events.Raw) error { _, err := resolve(schema); return err }

func resolve(schema events.Raw) (*jsonschema.Resolved, error) {
	if r, ok := resolved.Load(string(schema)); ok {
		return r.(*jsonschema.Resolved), nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("schema is not usable: %w", err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("schema is not usable: %w", err)
	}
	resolved.Store(string(schema), r)
	return r, nil
}
