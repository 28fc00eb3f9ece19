package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"correx/pkg/events"
)

// A Verdict is what the policy says of one call.
type Verdict struct {
	Effect events.PolicyEffect
	By     string // "policy" or "rule", for what is allowed
	Why    string // the tier, rule or mode that decided, for people
}

// A Question is what [Decide] needs to know of a call.
type Question struct {
	Tool       string
	Parameters events.Raw
	Tier       events.Tier
	Mode       Mode
	Rules      []events.ApprovalRuleGranted // remembered in this session
	Follows    events.ToolInvocationID      // the run whose result it is a second look at; empty: none
	Now        time.Time
}

// Decide applies the policy: T4 never runs; a deny rule beats an ask rule beats
// an allow rule; a remembered answer answers what would be asked; what no rule
// matches goes by tier and mode. A follow-up is asked about unless it is denied.
func Decide(p events.Policy, q Question) Verdict {
	if q.Tier >= events.T4 {
		return Verdict{events.Deny, "", "tier T4 is never run"}
	}
	if q.Follows != "" {
		return secondLook(p, q)
	}
	v := byMode(q)
	if r, ok := match(p, q); ok {
		v = Verdict{r.Effect, "policy", "policy: " + describe(r)}
	}
	if v.Effect == events.Ask {
		if why, ok := remembered(q); ok {
			return Verdict{events.Allow, "rule", why}
		}
	}
	return v
}

// secondLook asks a person, whatever would allow the call: what is to be looked
// at was not there yet when that was said. Only a denial holds.
func secondLook(p events.Policy, q Question) Verdict {
	v := Verdict{events.Ask, "", "review of " + string(q.Follows)}
	r, ok := match(p, q)
	switch {
	case ok && r.Effect == events.Deny:
		v = Verdict{events.Deny, "", "policy: " + describe(r)}
	case q.Mode == events.ModeDeny:
		v = Verdict{events.Deny, "", fmt.Sprintf("tier %s in mode %s: nothing above T1 runs", q.Tier, q.Mode)}
	}
	return v
}

func byMode(q Question) Verdict {
	because := fmt.Sprintf("tier %s in mode %s", q.Tier, q.Mode)
	switch {
	case q.Tier <= events.T1:
		return Verdict{events.Allow, "policy", because}
	case q.Mode == events.ModeDeny:
		return Verdict{events.Deny, "", because + ": nothing above T1 runs"}
	case q.Mode == events.ModeAuto && q.Tier == events.T2:
		return Verdict{events.Allow, "policy", because}
	}
	return Verdict{events.Ask, "", because}
}

// match returns the strongest rule that matches: the first deny, else the first
// ask, else the first allow.
func match(p events.Policy, q Question) (events.PolicyRule, bool) {
	for _, effect := range [...]events.PolicyEffect{events.Deny, events.Ask, events.Allow} {
		for _, r := range p.Rules {
			if r.Effect == effect && Matches(r, q.Tool, q.Parameters) {
				return r, true
			}
		}
	}
	return events.PolicyRule{}, false
}

// Matches reports whether r is about a call. A rule that looks at parameters
// which the call does not have does not match.
func Matches(r events.PolicyRule, tool string, params events.Raw) bool {
	if r.Tool != "*" && r.Tool != tool {
		return false
	}
	var p struct {
		Argv  []string `json:"argv"`
		Path  *string  `json:"path"`
		Patch *string  `json:"patch"`
	}
	if (len(r.Argv) > 0 || r.PathPrefix != "") && json.Unmarshal(params, &p) != nil {
		return false
	}
	if len(r.Argv) > len(p.Argv) {
		return false
	}
	for i, want := range r.Argv {
		if p.Argv[i] != want {
			return false
		}
	}
	return r.PathPrefix == "" || pathsMatch(r, p.Path, p.Patch)
}

// under reports whether name is dir or lies below it, by whole components.
func under(name, dir string) bool {
	name, dir = path.Clean(name), path.Clean(dir)
	return name == dir || dir == "." && !strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "..") ||
		strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

func remembered(q Question) (string, bool) {
	hash := ParametersHash(q.Parameters)
	for _, r := range q.Rules {
		if r.Tool == q.Tool && q.Tier <= r.MaxTier && q.Now.Before(r.Until) && (r.Parameters == "" || r.Parameters == hash) {
			return fmt.Sprintf("answered for the session by %s until %s", r.Actor, r.Until.UTC().Format(time.RFC3339)), true
		}
	}
	return "", false
}

func describe(r events.PolicyRule) string {
	s := string(r.Effect) + " " + r.Tool
	if len(r.Argv) > 0 {
		s += " " + strings.Join(r.Argv, " ")
	}
	if r.PathPrefix != "" {
		s += " under " + r.PathPrefix
	}
	if r.Because != "" {
		s += " (" + r.Because + ")"
	}
	return s
}

// CheckPolicy names every fault of the rules, each with its place, and checks
// their examples; it returns p with its version.
func CheckPolicy(p events.Policy) (events.Policy, []string) {
	var faults []string
	for i, r := range p.Rules {
		at := func(format string, a ...any) {
			faults = append(faults, fmt.Sprintf("rules[%d]: ", i)+fmt.Sprintf(format, a...))
		}
		switch r.Effect {
		case events.Deny, events.Ask, events.Allow:
		default:
			at("effect is %q; use deny, ask or allow", r.Effect)
		}
		if r.Tool == "" {
			at("tool is missing; use a tool's name, or * for any")
		}
		for _, m := range r.Match {
			if !Matches(r, r.Tool, m) {
				at("does not match its own example %s", m)
			}
		}
		for _, m := range r.NotMatch {
			if Matches(r, r.Tool, m) {
				at("matches %s, which it must not", m)
			}
		}
	}
	text, err := json.Marshal(p.Rules)
	if err != nil {
		faults = append(faults, err.Error())
	}
	sum := sha256.Sum256(text)
	p.Version = hex.EncodeToString(sum[:8])
	return p, faults
}
