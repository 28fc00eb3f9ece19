package approval_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"correx/internal/approval"
	"correx/pkg/events"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	params := events.Raw(`{"argv":["git","push","origin"]}`)
	policy := events.Policy{Rules: []events.PolicyRule{
		{Effect: events.Allow, Tool: "shell", Argv: []string{"git"}},
		{Effect: events.Ask, Tool: "shell", Argv: []string{"git", "commit"}},
		{Effect: events.Deny, Tool: "shell", Argv: []string{"git", "push"}},
		{Effect: events.Ask, Tool: "file_read", PathPrefix: "secrets"},
	}}
	rule := events.ApprovalRuleGranted{Tool: "shell", Parameters: approval.ParametersHash(params), MaxTier: events.T2, Until: now.Add(time.Hour)}
	for _, c := range []struct {
		name   string
		policy events.Policy
		q      approval.Question
		want   events.PolicyEffect
	}{
		{"T0 runs", events.Policy{}, approval.Question{Tier: events.T0, Mode: events.ModePrompt}, events.Allow},
		{"T1 runs even in mode deny", events.Policy{}, approval.Question{Tier: events.T1, Mode: events.ModeDeny}, events.Allow},
		{"T2 asks in mode prompt", events.Policy{}, approval.Question{Tier: events.T2, Mode: events.ModePrompt}, events.Ask},
		{"T2 runs in mode auto", events.Policy{}, approval.Question{Tier: events.T2, Mode: events.ModeAuto}, events.Allow},
		{"T3 asks in mode auto", events.Policy{}, approval.Question{Tier: events.T3, Mode: events.ModeAuto}, events.Ask},
		{"T2 is denied in mode deny", events.Policy{}, approval.Question{Tier: events.T2, Mode: events.ModeDeny}, events.Deny},
		{"no rule lifts T4", events.Policy{Rules: []events.PolicyRule{{Effect: events.Allow, Tool: "*"}}}, approval.Question{Tool: "x", Tier: events.T4, Mode: events.ModeAuto}, events.Deny},
		{"deny beats ask beats allow", policy, approval.Question{Tool: "shell", Parameters: params, Tier: events.T2, Mode: events.ModeAuto}, events.Deny},
		{"ask beats allow", policy, approval.Question{Tool: "shell", Parameters: events.Raw(`{"argv":["git","commit"]}`), Tier: events.T2, Mode: events.ModeAuto}, events.Ask},
		{"a rule lowers T3 to allowed", policy, approval.Question{Tool: "shell", Parameters: events.Raw(`{"argv":["git","log"]}`), Tier: events.T3, Mode: events.ModePrompt}, events.Allow},
		{"a path rule goes by whole components", policy, approval.Question{Tool: "file_read", Parameters: events.Raw(`{"path":"secretsauce"}`), Tier: events.T1}, events.Allow},
		{"a path rule sees through ..", policy, approval.Question{Tool: "file_read", Parameters: events.Raw(`{"path":"a/../secrets/x"}`), Tier: events.T1}, events.Ask},
		{"a remembered answer", events.Policy{}, approval.Question{Tool: "shell", Parameters: params, Tier: events.T2, Mode: events.ModePrompt, Rules: []events.ApprovalRuleGranted{rule}, Now: now}, events.Allow},
		{"a remembered answer ends", events.Policy{}, approval.Question{Tool: "shell", Parameters: params, Tier: events.T2, Mode: events.ModePrompt, Rules: []events.ApprovalRuleGranted{rule}, Now: now.Add(2 * time.Hour)}, events.Ask},
		{"a remembered answer is for these parameters", events.Policy{}, approval.Question{Tool: "shell", Parameters: events.Raw(`{}`), Tier: events.T2, Mode: events.ModePrompt, Rules: []events.ApprovalRuleGranted{rule}, Now: now}, events.Ask},
		{"a remembered answer does not beat deny", policy, approval.Question{Tool: "shell", Parameters: params, Tier: events.T2, Mode: events.ModePrompt, Rules: []events.ApprovalRuleGranted{rule}, Now: now}, events.Deny},
		{"a remembered answer is not for a higher tier", events.Policy{}, approval.Question{Tool: "shell", Parameters: params, Tier: events.T3, Mode: events.ModePrompt, Rules: []events.ApprovalRuleGranted{rule}, Now: now}, events.Ask},
		{"a review asks in mode auto", events.Policy{}, approval.Question{Follows: "t1-0", Tool: "x", Tier: events.T2, Mode: events.ModeAuto}, events.Ask},
		{"a review asks even at T0", events.Policy{}, approval.Question{Follows: "t1-0", Tool: "x", Tier: events.T0, Mode: events.ModeAuto}, events.Ask},
		{"no rule allows a review", policy, approval.Question{Follows: "t1-0", Tool: "shell", Parameters: events.Raw(`{"argv":["git","log"]}`), Tier: events.T2, Mode: events.ModePrompt}, events.Ask},
		{"no remembered answer is for a review", events.Policy{}, approval.Question{Follows: "t1-0", Tool: "shell", Parameters: params, Tier: events.T2, Mode: events.ModePrompt, Rules: []events.ApprovalRuleGranted{rule}, Now: now}, events.Ask},
		{"a rule denies a review", policy, approval.Question{Follows: "t1-0", Tool: "shell", Parameters: params, Tier: events.T2, Mode: events.ModeAuto}, events.Deny},
		{"mode deny denies a review, whatever a rule asks", policy, approval.Question{Follows: "t1-0", Tool: "shell", Parameters: events.Raw(`{"argv":["git","commit"]}`), Tier: events.T2, Mode: events.ModeDeny}, events.Deny},
		{"mode deny denies a review, whatever a rule allows", policy, approval.Question{Follows: "t1-0", Tool: "shell", Parameters: events.Raw(`{"argv":["git","log"]}`), Tier: events.T2, Mode: events.ModeDeny}, events.Deny},
		{"T4 is no review", events.Policy{}, approval.Question{Follows: "t1-0", Tool: "x", Tier: events.T4, Mode: events.ModeAuto}, events.Deny},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := approval.Decide(c.policy, c.q); got.Effect != c.want || got.Why == "" {
				t.Errorf("Decide = %+v, want %s with a reason", got, c.want)
			}
		})
	}
}

func TestCheckPolicyRunsExamples(t *testing.T) {
	_, faults := approval.CheckPolicy(events.Policy{Rules: []events.PolicyRule{
		{Effect: "maybe", Tool: ""},
		{Effect: events.Allow, Tool: "shell", Argv: []string{"git", "log"},
			Match:    []events.Raw{events.Raw(`{"argv":["git","push"]}`)},
			NotMatch: []events.Raw{events.Raw(`{"argv":["git","log","-p"]}`)}},
	}})
	for i, want := range []string{"rules[0]: effect", "rules[0]: tool", "rules[1]: does not match", "rules[1]: matches"} {
		if i >= len(faults) || !strings.HasPrefix(faults[i], want) {
			t.Fatalf("faults = %q, want one that begins with %q at %d", faults, want, i)
		}
	}
}

func TestDigestSeparatesItsFields(t *testing.T) {
	seen := map[string]string{}
	for name, d := range map[string]string{
		"plain":        approval.Digest("ab", events.Raw(`{}`), nil, "1"),
		"other split":  approval.Digest("a", events.Raw(`b{}`), nil, "1"),
		"other policy": approval.Digest("ab", events.Raw(`{}`), nil, "2"),
		"a base":       approval.Digest("ab", events.Raw(`{}`), []events.BaseHash{{Path: "p"}}, "1"),
		"its hash":     approval.Digest("ab", events.Raw(`{}`), []events.BaseHash{{Path: "p", SHA256: "00"}}, "1"),
	} {
		if other, dup := seen[d]; dup {
			t.Errorf("%q and %q have one digest", name, other)
		}
		seen[d] = name
	}
}

func TestVerifierTrustsOneKeyAndEveryField(t *testing.T) {
	key, _ := nkeys.CreateUser()
	pub, _ := key.PublicKey()
	id := approval.StreamIdentity{Stream: "EVENTS", Created: time.Unix(1700000000, 5)}
	v, err := approval.NewVerifier(id, pub)
	if err != nil {
		t.Fatal(err)
	}
	good, err := approval.Sign(key, id, events.ApprovalGranted{
		Ref: events.Ref{Session: "s", ID: "t1-0"}, Tool: "shell", Token: "shell", Digest: "d", Until: time.Unix(1700000100, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Verify(events.Record{Fact: good}); err != nil {
		t.Fatalf("the kernel's own approval: %v", err)
	}
	other, _ := nkeys.CreateUser()
	byOther, _ := approval.Sign(other, id, good)
	elsewhere, _ := approval.Sign(key, approval.StreamIdentity{Stream: "EVENTS", Created: time.Unix(1, 0)}, good)
	forge := func(change func(*events.ApprovalGranted)) events.ApprovalGranted { g := good; change(&g); return g }
	for name, g := range map[string]events.ApprovalGranted{
		"another key":         byOther,
		"another stream":      elsewhere,
		"another session":     forge(func(g *events.ApprovalGranted) { g.Session = "s2" }),
		"another invocation":  forge(func(g *events.ApprovalGranted) { g.ID = "t1-1" }),
		"another tool":        forge(func(g *events.ApprovalGranted) { g.Tool = "file_write" }),
		"another digest":      forge(func(g *events.ApprovalGranted) { g.Digest = "e" }),
		"a later end":         forge(func(g *events.ApprovalGranted) { g.Until = g.Until.Add(time.Hour) }),
		"no signature":        forge(func(g *events.ApprovalGranted) { g.Signature = "" }),
		"a broken signature":  forge(func(g *events.ApprovalGranted) { g.Signature = "?" }),
		"the key in the fact": forge(func(g *events.ApprovalGranted) { g.Key = byOther.Key; g.Signature = byOther.Signature }),
	} {
		t.Run(name, func(t *testing.T) {
			if err := v.Verify(events.Record{Fact: g}); !errors.Is(err, approval.ErrForged) {
				t.Errorf("Verify = %v, want ErrForged", err)
			}
		})
	}
}
