package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"correx/pkg/events"
)

// Settings returns what the kernel's decisions depend on besides the log.
func (c Config) Settings() events.Settings {
	s, a := c.Session, c.Approval
	return events.Settings{
		Mode:         s.Mode,
		SessionTools: s.Tools,
		Model:        events.ModelID(s.Model),
		Limits: events.Limits{
			Turns: s.Limits.Turns, ToolCalls: s.Limits.ToolCalls,
			Tokens: s.Limits.Tokens, WallTime: s.Limits.WallTime,
		},
		Policy:       c.Policy(),
		PreviewWait:  a.PreviewWait,
		ApprovalWait: a.Wait,
		ApprovalTTL:  a.TTL,
		OfferWait:    s.OfferWait,
		RuleTTL:      a.RuleTTL,
		CommandWait:  c.Kernel.CommandWait,
		Retries:      s.Retries,
		Withdraw:     s.Withdraw,
		Stop:         s.Stop,
	}
}

// Policy returns the policy, with the version that its rules make.
func (c Config) Policy() events.Policy {
	var rules []events.PolicyRule
	for _, r := range c.Approval.Policy {
		rules = append(rules, events.PolicyRule{
			Effect: r.Effect, Tool: r.Tool, Argv: r.Argv, PathPrefix: r.PathPrefix, Because: r.Because,
			Match: raws(r.Match), NotMatch: raws(r.NotMatch),
		})
	}
	text, err := json.Marshal(rules)
	if err != nil {
		panic(err) // texts and JSON that was made here
	}
	sum := sha256.Sum256(text)
	return events.Policy{Version: hex.EncodeToString(sum[:]), Rules: rules}
}

func raws(objects []Object) []events.Raw {
	var out []events.Raw
	for _, o := range objects {
		out = append(out, events.Raw(o))
	}
	return out
}
