package events

import "time"

// ToolInvocationRequested records that a model or an actor asked for a tool.
// It is a wish and no permission: nothing runs before an [ApprovalGranted].
type ToolInvocationRequested struct {
	Ref
	Decision
	Request   ToolRequest      `json:"request"`
	Tier      Tier             `json:"tier"` // the offer's, or higher if the request raised it
	Token     string           `json:"tool_token"`
	Offer     string           `json:"offer_digest,omitempty"` // of the [ToolOffer]; empty: nobody offers it
	PreviewBy time.Time        `json:"preview_by,omitzero"`    // zero: no preview is awaited
	Follows   ToolInvocationID `json:"follows,omitempty"`      // the invocation whose [FollowUp] this is
}

// Route returns the tool's token.
func (f ToolInvocationRequested) Route() string { return f.Token }

// ToolPreviewed is what a worker found without touching anything: whether the
// request is valid, and what it would change.
type ToolPreviewed struct {
	Ref
	Worker   WorkerID   `json:"worker"`
	Valid    bool       `json:"valid"`
	Reason   string     `json:"reason,omitempty"` // why it is not valid
	Tier     Tier       `json:"tier"`             // a preview may raise it
	Diff     string     `json:"diff,omitempty"`   // unified
	Base     []BaseHash `json:"base,omitempty"`
	Affected []string   `json:"affected,omitempty"`
	Notes    []string   `json:"notes,omitempty"` // what else a person should know: a directory, a warning
}

// ApprovalRequested asks a person. Digest names exactly what is shown.
type ApprovalRequested struct {
	Ref
	Decision
	Token    string    `json:"tool_token"`
	Tool     string    `json:"tool"`
	Tier     Tier      `json:"tier"`
	Digest   string    `json:"digest"`
	Policy   string    `json:"policy_version"`
	Why      string    `json:"why"`             // the rule or mode that asks
	Notes    []string  `json:"notes,omitempty"` // such as: no preview came in time
	Deadline time.Time `json:"deadline"`        // expires then
}

// Route returns the tool's token.
func (f ApprovalRequested) Route() string { return f.Token }

// An ApprovalScope says how far an answer reaches.
type ApprovalScope string

const (
	ScopeOnce    ApprovalScope = "once"    // this invocation. The default.
	ScopeSession ApprovalScope = "session" // and every equal call of this session, for a time
)

// ApprovalGranted permits one invocation to run once, until Until. The kernel
// signs it; a worker runs nothing else.
type ApprovalGranted struct {
	Ref
	Decision
	Token     string        `json:"tool_token"`
	Tool      string        `json:"tool"`
	Tier      Tier          `json:"tier"`
	Digest    string        `json:"digest"`
	Policy    string        `json:"policy_version"`
	By        string        `json:"by"` // "policy", "rule" or "person"
	Scope     ApprovalScope `json:"scope"`
	Reason    string        `json:"reason,omitempty"`
	Until     time.Time     `json:"until"`
	Key       string        `json:"key"`       // public NKey of the signer
	Signature string        `json:"signature"` // see internal/approval
}

// Route returns the tool's token.
func (f ApprovalGranted) Route() string { return f.Token }

// ApprovalDenied says that a person said no.
type ApprovalDenied struct {
	Ref
	Decision
	Reason string `json:"reason,omitempty"`
}

// ApprovalExpired says that nobody answered in time.
type ApprovalExpired struct {
	Ref
	Decision
	Deadline time.Time `json:"deadline"`
}

// ToolExecutionStarted is a tool-worker's claim. Its sequence is the fencing
// token of the invocation.
type ToolExecutionStarted struct {
	Ref
	Claim
	Isolation Isolation `json:"isolation"`
}

// ToolExecutionCompleted says that a tool succeeded.
type ToolExecutionCompleted struct {
	Ref
	Fence
	Receipt ToolReceipt `json:"receipt"`
}

// Effects says what a failed run left behind.
type Effects string

const (
	EffectsNone       Effects = "none"        // it touched nothing
	EffectsRolledBack Effects = "rolled_back" // it did, and all is restored
	EffectsUnknown    Effects = "unknown"     // whoever knows is lost
	EffectsConflict   Effects = "conflict"    // a restore met another's work; backups are kept
	EffectsKept       Effects = "kept"        // what it did stays (a shell command in direct mode)
)

// ToolExecutionFailed says that a tool ran, or began to, and failed.
type ToolExecutionFailed struct {
	Ref
	Fence
	Reason      string       `json:"reason"`
	Recoverable bool         `json:"recoverable"` // the same call may do better later
	Effects     Effects      `json:"effects"`
	Receipt     *ToolReceipt `json:"receipt,omitempty"`
}

// ToolExecutionRejected ends an invocation that never ran.
type ToolExecutionRejected struct {
	Ref
	Decision
	Tier    Tier     `json:"tier"`
	Reason  string   `json:"reason"`
	Worker  WorkerID `json:"worker,omitempty"` // the worker that rejected it; empty: the kernel
	Denied  bool     `json:"denied,omitempty"` // a person said no
	Expired bool     `json:"expired,omitempty"`
}

// CancelRequested asks the owner of a running invocation to stop it.
type CancelRequested struct {
	Ref
	Decision
	Reason string `json:"reason,omitempty"`
}

// A RecoveredFile is what became of one file.
type RecoveredFile struct {
	Path    string  `json:"path"`
	Effects Effects `json:"effects"`
	Backup  string  `json:"backup,omitempty"` // where a kept backup lies, on the worker
}

// Recovered says what became of files that a late rollback met. It follows an
// end and changes nothing else.
type Recovered struct {
	Ref
	Fence
	Worker WorkerID        `json:"worker"`
	Files  []RecoveredFile `json:"files"`
}

func (ToolInvocationRequested) FactName() FactName { return "tool.requested" }
func (ToolPreviewed) FactName() FactName           { return "tool.previewed" }
func (ApprovalRequested) FactName() FactName       { return "tool.approval_requested" }
func (ApprovalGranted) FactName() FactName         { return "tool.approved" }
func (ApprovalDenied) FactName() FactName          { return "tool.denied" }
func (ApprovalExpired) FactName() FactName         { return "tool.expired" }
func (ToolExecutionStarted) FactName() FactName    { return "tool.started" }
func (ToolExecutionCompleted) FactName() FactName  { return "tool.completed" }
func (ToolExecutionFailed) FactName() FactName     { return "tool.failed" }
func (ToolExecutionRejected) FactName() FactName   { return "tool.rejected" }
func (CancelRequested) FactName() FactName         { return "tool.cancel_requested" }
func (Recovered) FactName() FactName               { return "tool.recovered" }
