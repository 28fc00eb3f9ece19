package events

import "time"

// Settings is all that the kernel's decisions depend on besides the log. A
// kernel announces its settings in [WorkerStarted]; decisions use those of the
// latest announcement, so that they can be checked again from the log alone.
type Settings struct {
	Mode         ApprovalMode  `json:"mode"`
	SessionTools []string      `json:"session_tools,omitempty"` // for sessions that name none
	Model        ModelID       `json:"model,omitempty"`         // for sessions that name none
	Limits       Limits        `json:"limits"`
	Policy       Policy        `json:"policy"`
	PreviewWait  time.Duration `json:"preview_wait_ns"`  // for a preview; then the kernel goes on without
	ApprovalWait time.Duration `json:"approval_wait_ns"` // for a person's answer
	ApprovalTTL  time.Duration `json:"approval_ttl_ns"`  // from an approval to its start at the latest
	OfferWait    time.Duration `json:"offer_wait_ns"`    // for a worker that offers a model or tool
	RuleTTL      time.Duration `json:"rule_ttl_ns"`      // of a remembered answer
	CommandWait  time.Duration `json:"command_wait_ns"`  // of a command for what it refers to
	Retries      int           `json:"retries"`          // of a failed inference, with another seed
	Withdraw     int           `json:"withdraw"`         // equal calls after which a tool is shut for a turn
	Stop         int           `json:"stop"`             // equal calls with equal results that end a session
}

// A Policy decides which invocations run, ask or are rejected: deny beats ask
// beats allow, and what no rule matches goes by the session's mode.
type Policy struct {
	Version string       `json:"version"` // SHA-256 of the rules
	Rules   []PolicyRule `json:"rules,omitempty"`
}

// A PolicyRule matches a tool, and optionally what its parameters begin with.
type PolicyRule struct {
	Effect     PolicyEffect `json:"effect"`
	Tool       string       `json:"tool"`                  // name, or * for any
	Argv       []string     `json:"argv,omitempty"`        // shell: the first arguments, each exactly
	PathPrefix string       `json:"path_prefix,omitempty"` // files: a directory, by whole components
	Because    string       `json:"because,omitempty"`
	Match      []Raw        `json:"match,omitempty"`     // parameters that it must match; checked at load
	NotMatch   []Raw        `json:"not_match,omitempty"` // and must not match
}

// A PolicyEffect is what a rule says.
type PolicyEffect string

const (
	Deny  PolicyEffect = "deny"
	Ask   PolicyEffect = "ask"
	Allow PolicyEffect = "allow"
)
