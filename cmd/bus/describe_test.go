package main

import (
	"reflect"
	"strings"
	"testing"

	"correx/internal/cli"
	"correx/pkg/events"
)

// TestEveryFactIsDescribed fills every text of every fact with what must not
// reach a terminal.
func TestEveryFactIsDescribed(t *testing.T) {
	for _, typ := range events.FactTypes() {
		v := reflect.New(reflect.TypeOf(typ.New())).Elem()
		fill(v)
		r := events.Record{Fact: v.Interface().(events.Fact), Aggregate: events.Aggregate{Session: "s", Kind: typ.Name.Kind(), ID: "id"}}
		got := describe(r, cli.Style{})
		if strings.TrimSpace(got) == "" || strings.Contains(got, string(typ.Name)) {
			t.Errorf("%s is described as %q", typ.Name, got)
		}
		if strings.ContainsAny(got, "\x1b\n\u202e") {
			t.Errorf("%s lets control characters through: %q", typ.Name, got)
		}
	}
	if got := describe(events.Record{Err: events.ErrForged}, cli.Style{}); !strings.Contains(got, "does not hold") {
		t.Errorf("a forgery is described as %q", got)
	}
}

const evil = "a\x1b[2J\n\u202eb"

// fill puts evil into every text of v.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(evil))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Bool:
		v.SetBool(true)
	}
}
