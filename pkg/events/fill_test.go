package events_test

import (
	"fmt"
	"reflect"
	"time"

	"correx/pkg/events"
)

// raw is a value that any detour through map[string]any would ruin.
const raw = `{"z":9007199254740993,"a":{"n":null,"m":[null,{"k":null}],"f":1.0e+05,"d":0.10},"html":"<b>&amp;</b>","u":"漢字 é 👩‍💻","esc":"\u00e9\/\u2028","big":-123456789012345678901234567890}`

// strange is a text that JSON and HTML might want to change.
const strange = "<b>&amp;</b> 漢字 \u2028 \"quoted\" \\ \t é 👩‍💻"

var instant = time.Date(2026, 2, 3, 4, 5, 6, 789012345, time.UTC)

// fill sets every field of v to something that is not zero.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case events.Raw:
		v.Set(reflect.ValueOf(events.Raw(raw)))
		return
	case time.Time:
		v.Set(reflect.ValueOf(instant))
		return
	case events.Tier:
		v.Set(reflect.ValueOf(events.T3))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(strange)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1<<62 + 1)
	case reflect.Uint64:
		v.SetUint(1<<63 + 3)
	case reflect.Float64:
		v.SetFloat(0.1)
	case reflect.Struct:
		for n := range v.NumField() {
			fill(v.Field(n))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem)
		v.SetMapIndex(reflect.ValueOf(strange), elem)
		v.SetMapIndex(reflect.ValueOf("b"), elem)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	default:
		panic(fmt.Sprintf("fill knows no %s", v.Type()))
	}
}

// filled returns a fact of a type with nothing in it zero, and tokens where
// there must be such.
func filled(typ events.FactType) events.Fact {
	p := reflect.New(reflect.TypeOf(typ.New()))
	fill(p.Elem())
	p.Elem().FieldByName("Ref").Set(reflect.ValueOf(events.Ref{Session: "s1", ID: "x1"}))
	for _, name := range []string{"Token", "ModelToken"} {
		if f := p.Elem().FieldByName(name); f.IsValid() {
			f.SetString("tok")
		}
	}
	return p.Elem().Interface().(events.Fact)
}
