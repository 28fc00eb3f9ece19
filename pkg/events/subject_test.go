package events_test

import (
	"strings"
	"testing"

	"correx/pkg/events"
)

func TestSubjectsComeApartAsTheyWerePut(t *testing.T) {
	for _, typ := range events.FactTypes() {
		f := filled(typ)
		subject, err := events.SubjectOf(f)
		if err != nil {
			t.Fatal(err)
		}
		a, name, route, err := events.ParseSubject(subject)
		if err != nil || a != events.AggregateOf(f) || name != typ.Name || (route != "") != typ.Routed {
			t.Errorf("%s: %v %s %q %v", subject, a, name, route, err)
		}
		if !strings.HasPrefix(subject, strings.TrimSuffix(a.Filter(), ">")) || !strings.HasPrefix(subject, strings.TrimSuffix(events.SessionFilter(a.Session), ">")) {
			t.Errorf("%s is outside of %s", subject, a.Filter())
		}
		if typ.Routed && events.RoutedFilter(typ.Name, route) != strings.NewReplacer(".s1.", ".*.", ".x1.", ".*.").Replace(subject) {
			t.Errorf("filter of %s is %s", subject, events.RoutedFilter(typ.Name, route))
		}
		if name.Kind() != a.Kind || string(name) != string(name.Kind())+"."+name.Token() {
			t.Errorf("%s has kind %s, token %s", name, name.Kind(), name.Token())
		}
		if a.Ref() != f.Of() || a.String() != "s1."+string(a.Kind)+".x1" {
			t.Errorf("%s is of %v", a, a.Ref())
		}
	}
}

func TestSubjectsThatAreNone(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, s := range []string{"", "evt", "evt.s1.tool.t1", "cmd.s1.tool.t1.started", "evt.s1.tool.t1.a.b.c", "evt.s1..t1.started", "evt.s1.tool.t 1.started",
		"evt.*.tool.t1.started", "evt.s1.tool.t1.>", "evt.s1.tool." + long + "x.started", "evt." + strings.Repeat(long+".", 4), "evt.s1.tool.tä.started", "evt.s1.tool.t1.started\x00"} {
		if a, _, _, err := events.ParseSubject(s); err == nil || a != (events.Aggregate{}) {
			t.Errorf("%q passes: %v %v", s, a, err)
		}
	}
	// Each token is short enough, the whole is not.
	f := events.ApprovalGranted{Ref: events.Ref{Session: events.SessionID(long), ID: long}, Token: long}
	if s, err := events.SubjectOf(f); err != nil || len(s) > events.MaxSubject {
		t.Errorf("the longest subject: %d bytes, %v", len(s), err)
	}
}

func TestTokens(t *testing.T) {
	for _, good := range []string{"a", "A-z_09", strings.Repeat("x", 64)} {
		if err := events.CheckToken(good); err != nil || events.Token(good) != good {
			t.Errorf("%q: %v, token %q", good, err, events.Token(good))
		}
	}
	seen := map[string]string{}
	for _, bad := range []string{"", ".", "a.b", "a b", "*", ">", "ä", "a\n", strings.Repeat("x", 65), strings.Repeat("x", 66),
		"qwen2.5:7b/instruct", "qwen2.5_7b/instruct", "qwen2-5-7b-instruct.", strings.Repeat("ä", 40), "\x00", "日本"} {
		if events.CheckToken(bad) == nil {
			t.Errorf("%q passes for a token", bad)
		}
		tok := events.Token(bad)
		if err := events.CheckToken(tok); err != nil {
			t.Errorf("token of %q: %v", bad, err)
		}
		if other, ok := seen[tok]; ok {
			t.Errorf("%q and %q share the token %s", bad, other, tok)
		}
		seen[tok] = bad
	}
	if tok := events.Token("qwen2.5:7b/instruct"); !strings.HasPrefix(tok, "qwen2-5-7b-instruct-") {
		t.Errorf("token is not readable: %s", tok)
	}
	if id := events.ModelAggregateID("w1", "smol_2"); id != "w1_smol_2" {
		t.Errorf("model aggregate %q", id)
	}
	one, two := events.ModelAggregateID("w_a", "b"), events.ModelAggregateID("w", "a_b")
	if one == two || events.CheckToken(one) != nil || events.CheckToken(two) != nil {
		t.Errorf("two models, aggregates %q and %q", one, two)
	}
}

func TestTierText(t *testing.T) {
	for _, bad := range []string{"", "t1", "T5", "T10", "1", "T"} {
		var tier events.Tier
		if tier.UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q passes for a tier", bad)
		}
	}
	for tier := events.T0; tier.Valid(); tier++ {
		text, err := tier.MarshalText()
		var back events.Tier
		if err != nil || back.UnmarshalText(text) != nil || back != tier {
			t.Errorf("%s: %s %v %s", tier, text, err, back)
		}
	}
}
