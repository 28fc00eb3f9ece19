package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"correx/pkg/events"
)

func TestSimplify(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 20) + `{}` + strings.Repeat(`}}`, 20)
	wide := `{"type":"object","properties":{"a":{"enum":["` + strings.Repeat("x", maxSchema) + `"]},"b":{}}}`
	bomb := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`
	for i := range 11 {
		bomb += fmt.Sprintf(`"d%d":{"type":"object","properties":{`, i)
		for j := range 10 {
			bomb += fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d%d"},`, j, i+1)
		}
		bomb = strings.TrimSuffix(bomb, ",") + `}},`
	}
	bomb += `"d11":{"type":"string"}}}`
	for _, c := range []struct{ name, in, want string }{
		{"none", `{"type":"object"}`, `{"type":"object","properties":{},"additionalProperties":false}`},
		{"order and bounds", `{"type":"object","$schema":"x","title":"T","properties":{"a":{"type":"string","pattern":"(?<x>","format":"uri"},"z":{"type":"string","maxLength":90000},"m":{"type":"integer","minimum":1,"maximum":9e18}},"required":["z","q"]}`,
			`{"type":"object","properties":{"z":{"type":"string","maxLength":2000},"q":{},"a":{"type":"string","maxLength":2000},"m":{"type":"integer","minimum":1}},"required":["z","q"],"additionalProperties":false}`},
		{"references", `{"type":"object","properties":{"c":{"allOf":[{"$ref":"#/$defs/C"}],"description":"d"}},"$defs":{"C":{"enum":["r","g"],"type":"string"}}}`,
			`{"type":"object","properties":{"c":{"type":"string","enum":["r","g"]}},"additionalProperties":false}`},
		{"choices", `{"type":"object","properties":{"c":{"anyOf":[{"type":"string"},{"type":"null"}]},"l":{"type":"array","items":{"type":"number"},"minItems":1}},"anyOf":[{"required":["c"]}],"not":{},"additionalProperties":true}`,
			`{"type":"object","properties":{"c":{"anyOf":[{"type":"string","maxLength":2000},{"type":"null"}]},"l":{"type":"array","minItems":1,"items":{"type":"number"}}},"additionalProperties":true}`},
		{"invisible", `{"type":"object","properties":{"a":{"type":"boolean","description":"x\u202ey"}}}`,
			`{"type":"object","properties":{"a":{"type":"boolean","description":"x` + "\uFFFD" + `y"}},"additionalProperties":false}`},
		{"no object", `{"type":"string"}`, "!is of type string"},
		{"no schema", `[1]`, "!is no object"},
		{"loop", `{"type":"object","properties":{"a":{"$ref":"#"}}}`, `!refers to "#"`},
		{"recursion", `{"type":"object","properties":{"a":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}}}}}`, "!leads back to itself"},
		{"elsewhere", `{"type":"object","properties":{"a":{"$ref":"https://evil/x"}}}`, "!not in it"},
		{"nowhere", `{"type":"object","properties":{"a":{"$ref":"#/a/b/c"}}}`, "!not there"},
		{"unknown type", `{"type":"object","properties":{"a":{"type":"file"}}}`, "!unknown type file"},
		{"deep", deep, "!deep"},
		{"wide", wide, "!larger than 32 KiB"},
		{"bomb", bomb, "!"},
	} {
		var in any
		if err := json.Unmarshal([]byte(c.in), &in); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, _, err := simplify(in)
		if want, refused := strings.CutPrefix(c.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s, %v; want an error with %q", c.name, short(got), err, want)
			}
			continue
		}
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s, want\n%s", c.name, err, got, c.want)
		}
	}
}

// FuzzSimplify: whatever a server sends, the result is small and can be used, or
// there is a reason.
func FuzzSimplify(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/N"}},"required":["b"],"$defs":{"N":{"enum":[1,null]}}}`)
	f.Add(`{"anyOf":[{"properties":{"x":{"const":1}}},{"items":true}],"allOf":[{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var in any
		if json.Unmarshal([]byte(text), &in) != nil {
			return
		}
		got, resolved, err := simplify(in)
		if err != nil {
			return
		}
		if resolved == nil || !json.Valid(got) || got.Object() != nil {
			t.Errorf("%s became %s", text, got)
		}
		again, _, _ := simplify(in)
		if string(again) != string(got) {
			t.Errorf("%s became %s and %s", text, got, again)
		}
	})
}

func TestTierOf(t *testing.T) {
	yes, no := ptr(true), ptr(false)
	closed := &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: no}
	open := &sdk.ToolAnnotations{ReadOnlyHint: true}
	additive := &sdk.ToolAnnotations{DestructiveHint: no}
	destructive := &sdk.ToolAnnotations{DestructiveHint: yes}
	titled := &sdk.ToolAnnotations{Title: "x"}
	for _, c := range []struct {
		a     *sdk.ToolAnnotations
		tier  *events.Tier
		trust bool
		want  events.Tier
	}{
		{closed, nil, false, events.T3}, {nil, nil, false, events.T3}, {additive, nil, false, events.T3},
		{closed, ptr(events.T1), false, events.T1}, {nil, ptr(events.T1), false, events.T1}, {titled, ptr(events.T1), false, events.T1},
		{open, ptr(events.T0), false, events.T1}, {additive, ptr(events.T1), false, events.T2}, {destructive, ptr(events.T1), false, events.T3},
		{closed, nil, true, events.T0}, {open, nil, true, events.T1}, {additive, nil, true, events.T2}, {destructive, nil, true, events.T3},
		{nil, nil, true, events.T3}, {titled, nil, true, events.T3}, {closed, ptr(events.T2), true, events.T2}, {closed, ptr(events.T4), false, events.T4},
	} {
		if got := tierOf(c.a, Server{Tier: c.tier, Trust: c.trust}); got != c.want {
			t.Errorf("%s with %+v: %s, want %s", text(c.a), c, got, c.want)
		}
	}
}
