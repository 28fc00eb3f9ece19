package session

import (
	"slices"
	"time"

	"correx/pkg/events"
)

// A ToolInvocationRecord is one invocation as readers see it.
type ToolInvocationRecord struct {
	ID          events.ToolInvocationID `json:"id"`
	Name        string                  `json:"name"`
	Tier        events.Tier             `json:"tier"`
	Request     events.ToolRequest      `json:"request"`
	Follows     events.ToolInvocationID `json:"follows,omitempty"` // whose follow-up it is
	Status      ToolInvocationStatus    `json:"status"`
	Receipt     *events.ToolReceipt     `json:"receipt,omitempty"`
	RequestedAt time.Time               `json:"requested_at"`          // as stored
	CompletedAt *time.Time              `json:"completed_at,omitzero"` // set by every end
}

// ToolState is all invocations of one session, in the order of their requests.
// It is always folded from the log and never stored.
type ToolState struct {
	Invocations []ToolInvocationRecord `json:"invocations"`

	folds []Invocation
}

// ReduceTools folds one record. Records that are not about tools, and those that
// do not hold, pass through.
func ReduceTools(s ToolState, r events.Record) ToolState {
	if r.Aggregate.Kind != events.KindTool {
		return s
	}
	k := slices.IndexFunc(s.folds, func(i Invocation) bool { return string(i.ID) == r.Aggregate.ID })
	fold := Invocation{Session: r.Aggregate.Session, ID: events.ToolInvocationID(r.Aggregate.ID)}
	if k >= 0 {
		fold = s.folds[k]
	}
	next, err := fold.Step(r)
	if k < 0 && next.Requested == nil {
		return s
	}
	s.folds, s.Invocations = slices.Clone(s.folds), slices.Clone(s.Invocations)
	if k < 0 {
		k = len(s.folds)
		s.folds, s.Invocations = append(s.folds, next), append(s.Invocations, ToolInvocationRecord{})
	}
	s.folds[k] = next
	if err == nil {
		s.Invocations[k] = next.Record()
	}
	return s
}

// Record returns the invocation as readers see it.
func (i Invocation) Record() ToolInvocationRecord {
	r := ToolInvocationRecord{ID: i.ID, Status: i.status, RequestedAt: i.RequestedAt, Receipt: i.Receipt(), Tier: i.Tier(), Follows: i.Follows()}
	if i.Requested != nil {
		r.Name, r.Request = i.Requested.Request.Tool, i.Requested.Request
	}
	if i.End != nil {
		at := i.EndedAt
		r.CompletedAt = &at
	}
	return r
}

// Receipt returns the receipt of an invocation that ran, or nil.
func (i Invocation) Receipt() *events.ToolReceipt {
	switch f := i.End.(type) {
	case events.ToolExecutionCompleted:
		return &f.Receipt
	case events.ToolExecutionFailed:
		return f.Receipt
	}
	return nil
}
