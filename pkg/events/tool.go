package events

import "time"

// A ToolCapability is what a tool needs to do its work.
type ToolCapability string

const (
	FileRead      ToolCapability = "FILE_READ"
	FileWrite     ToolCapability = "FILE_WRITE"
	NetworkAccess ToolCapability = "NETWORK_ACCESS"
	ShellExec     ToolCapability = "SHELL_EXEC"
	ProcessSpawn  ToolCapability = "PROCESS_SPAWN"
)

// A ToolRequest is one wish to run one tool.
type ToolRequest struct {
	Invocation ToolInvocationID `json:"invocation_id"`
	Session    SessionID        `json:"session_id"`
	Stage      StageID          `json:"stage_id"`  // the turn, or what the requester names
	Tool       string           `json:"tool_name"` // raw name
	Parameters Raw              `json:"parameters"`
}

// An Isolation is how well a tool was confined when it ran.
type Isolation string

const (
	IsolationFull   Isolation = "full"    // namespaces, Landlock, seccomp
	IsolationFSOnly Isolation = "fs-only" // Landlock and seccomp
	IsolationNone   Isolation = "none"    // process group, time-out, cleared environment
)

// Rank orders isolations: a higher one confines more. An unknown one is none.
func (i Isolation) Rank() int {
	switch i {
	case IsolationFull:
		return 2
	case IsolationFSOnly:
		return 1
	}
	return 0
}

// An ArtifactRef points into the ARTIFACTS object store, whose keys are the
// SHA-256 of what they hold.
type ArtifactRef struct {
	Name      string `json:"name"` // what it is: "stdout", "diff", a path
	SHA256    string `json:"sha256"`
	Size      int64  `json:"size"` // bytes
	MediaType string `json:"media_type,omitempty"`
}

// A ToolReceipt says what a run did. A run that failed has one too: what it
// printed is not lost.
type ToolReceipt struct {
	ExitCode   int               `json:"exit_code"`
	Output     string            `json:"output_summary"` // at most 64 KiB; all of it is an artifact
	Structured Raw               `json:"structured_output,omitempty"`
	Affected   []string          `json:"affected_entities,omitempty"` // paths that were changed
	Duration   time.Duration     `json:"duration_ns"`
	Tier       Tier              `json:"tier"`
	Time       time.Time         `json:"timestamp"` // when the run ended, by the worker's clock
	Metadata   map[string]string `json:"metadata,omitempty"`
	Diff       string            `json:"diff,omitempty"` // unified
	Isolation  Isolation         `json:"isolation,omitempty"`
	Artifacts  []ArtifactRef     `json:"artifacts,omitempty"`
	FollowUp   *FollowUp         `json:"follow_up,omitempty"` // of a run that completed
}

// A FollowUp is a call that a run asks the kernel to open: the second look at
// what it made. Only a tool that is FollowUpOnly may be asked for, and a person
// always decides.
type FollowUp struct {
	Tool       string `json:"tool"` // raw name
	Parameters Raw    `json:"parameters"`
}

// A BaseHash is the state of a file that an approval rests on.
type BaseHash struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty"` // empty: nothing was there
}

// A ToolOffer is a tool as a worker announces it. The kernel knows tools from
// offers alone.
type ToolOffer struct {
	Name         string           `json:"name"`  // raw
	Token        string           `json:"token"` // in subjects
	Description  string           `json:"description"`
	Tier         Tier             `json:"tier"`
	Capabilities []ToolCapability `json:"capabilities,omitempty"`
	Schema       Raw              `json:"schema"`             // JSON Schema of the parameters
	Digest       string           `json:"digest"`             // SHA-256 over all the above
	Previews     bool             `json:"previews"`           // asked before a person is
	Idempotent   bool             `json:"idempotent"`         // may run again after a worker was lost
	Example      *ToolExample     `json:"example,omitempty"`  // for the worked example
	Examples     []ToolExample    `json:"examples,omitempty"` // of further kinds of calls
	Isolation    Isolation        `json:"isolation,omitempty"`
	FollowUpOnly bool             `json:"follow_up_only,omitempty"` // only a [FollowUp] may call it; part of the digest
	Origin       string           `json:"origin,omitempty"`         // who else it comes from, such as the MCP server "files"
}

// A ToolExample is one worked call, told to small models as real turns.
type ToolExample struct {
	Task       string `json:"task"`       // what a person would ask
	Parameters Raw    `json:"parameters"` // the call that does it
	Result     string `json:"result"`     // what the tool answers
	Answer     string `json:"answer"`     // what the model then says
}
