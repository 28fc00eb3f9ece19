package config

import (
	"correx/internal/approval"
	"correx/pkg/events"
)

// Settings returns what the kernel's decisions depend on besides the log.
func (c Config) Settings() events.Settings {
	s, a := c.Session, c.Approval
	if len(s.Tools) == 0 {
		// A session that starts before the workers do has to wait for them.
		s.Tools = c.Tools.Enabled()
	}
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
	p, _ := c.checkPolicy()
	return p
}

// checkPolicy also names what is wrong with the rules, each as "rules[i]: …".
func (c Config) checkPolicy() (events.Policy, []string) {
	var rules []events.PolicyRule
	for _, r := range c.Approval.Policy {
		rules = append(rules, events.PolicyRule{
			Effect: r.Effect, Tool: r.Tool, Argv: r.Argv, PathPrefix: r.PathPrefix, Because: r.Because,
			Match: raws(r.Match), NotMatch: raws(r.NotMatch),
		})
	}
	return approval.CheckPolicy(events.Policy{Rules: rules})
}

func raws(objects []Object) []events.Raw {
	var out []events.Raw
	for _, o := range objects {
		out = append(out, events.Raw(o))
	}
	return out
}
