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
