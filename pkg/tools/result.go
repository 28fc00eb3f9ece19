package tools

import "correx/pkg/events"

// A ToolResult is a [Success] or a [Failure].
type ToolResult interface {
	Of() events.ToolInvocationID
	More() Detail
	isToolResult()
}

// A Success is a run that did what was asked.
type Success struct {
	Invocation events.ToolInvocationID
	Output     string // what the model is told; whole
	Metadata   map[string]string
	Detail
}

// A Failure is a run that did not.
type Failure struct {
	Invocation  events.ToolInvocationID
	Reason      string // what the model is told
	Recoverable bool   // the same call may do better later
	Output      string // what it printed all the same
	Metadata    map[string]string
	Detail
}

// Detail is what goes into a receipt besides.
type Detail struct {
	ExitCode   int        // of a process; else 0 for a success and 1 for a failure
	Structured events.Raw // a JSON object, at most 64 KiB; empty: none
	Overflow   []Blob     // what is too large for a receipt
	Isolation  events.Isolation
	Affected   []string         // what was changed; empty: what the tool announced
	Effects    events.Effects   // of a failure; empty: whatever the sandbox finds
	FollowUp   *events.FollowUp // of a success: the call that the kernel is to open next
	Diff       string           // unified; empty: what the sandbox finds
}

// A Blob is output that belongs into the object store.
type Blob struct {
	Name      string // "stdout", "diff", "output"
	MediaType string
	Data      []byte
}

func (s Success) Of() events.ToolInvocationID { return s.Invocation }
func (f Failure) Of() events.ToolInvocationID { return f.Invocation }
func (d Detail) More() Detail                 { return d }
func (Success) isToolResult()                 {}
func (Failure) isToolResult()                 {}

// fail makes a Failure that the same call would meet again.
func fail(r events.ToolRequest, reason string) Failure {
	return Failure{Invocation: r.Invocation, Reason: reason, Detail: Detail{ExitCode: 1}}
}
