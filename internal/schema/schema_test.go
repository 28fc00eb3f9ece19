package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"correx/internal/schema"
	"correx/pkg/events"
)

func TestEveryCommandAndFactHasASchemaThatItsZeroValueFits(t *testing.T) {
	for _, name := range schema.Names() {
		s, err := schema.For(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Check(s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, _ := schema.For("tool.approve")
	good, _ := json.Marshal(events.ToolApprove{Invocation: "t1-0", Digest: "d", Scope: events.ScopeOnce})
	if err := schema.Validate(s, good); err != nil {
		t.Errorf("a good approval: %v", err)
	}
	for _, bad := range []string{`{"invocation":"t1-0"}`, `{"invocation":"t","digest":"d","colour":1}`, `{"invocation":"t","digest":3}`} {
		if err := schema.Validate(s, events.Raw(bad)); err == nil {
			t.Errorf("%s is valid by the schema", bad)
		}
	}
}

func TestForNamesWhatIsUnknown(t *testing.T) {
	if _, err := schema.For("tool.destroy"); err == nil || !strings.Contains(err.Error(), "tool.destroy") {
		t.Errorf("error = %v", err)
	}
}

func TestValidateSaysTheSameEveryTime(t *testing.T) {
	const object = `{"type":"object","required":["a","z"],"additionalProperties":false,"properties":{` +
		`"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"array","items":{"type":"string","maxLength":2}},` +
		`"d":{"enum":["x","y"]},"e":{"type":"object","properties":{"f":{"type":"boolean"}},"additionalProperties":false},"z":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`
	for _, c := range []struct{ value, want string }{
		{`{"b":"1","q":1,"p":2,"d":"w"}`, `a is missing; z is missing; b is string, not integer; d: enum: w does not equal any of: [x y]; ` +
			`p is unknown; there are a, b, c, d, e, z; q is unknown; there are a, b, c, d, e, z`},
		{`{"a":1,"z":7,"b":1.5}`, `a is number, not string; b is number, not integer; z fits none of what is allowed`},
		{`{"a":"","z":null,"c":["ab","abc",3]}`, `c[1]: maxLength: "abc" contains 3 Unicode code points, more than 2; c[2] is number, not string`},
		{`{"a":"","z":"","e":{"f":0,"g":0}}`, `e.f is number, not boolean; e.g is unknown; there are f`},
		{`[]`, `the whole is array, not object`},
		{`{"a":"","z":"","c":[]}`, ``},
	} {
		for range 50 {
			got := ""
			if err := schema.Validate(events.Raw(object), events.Raw(c.value)); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Fatalf("%s\n got %s\nwant %s", c.value, got, c.want)
			}
		}
	}
}
