package session

import (
	"strconv"
	"time"

	"correx/pkg/events"
)

// A Difference is what happened to a session between two States of it. The zero
// value says that nothing did, but for records that change nothing.
type Difference struct {
	Fields     []FieldChange                `json:"fields,omitempty"`
	Messages   []Message                    `json:"messages,omitempty"`   // new
	Inferences []InferenceChange            `json:"inferences,omitempty"` // new, or got on
	Calls      []CallChange                 `json:"calls,omitempty"`      // likewise
	Approvals  []ApprovalChange             `json:"approvals,omitempty"`
	Rules      []events.ApprovalRuleGranted `json:"rules,omitempty"`  // new
	Alarms     []Alarm                      `json:"alarms,omitempty"` // new
}

// A FieldChange is one value of the session as a whole that is another now. An
// empty text is: none.
type FieldChange struct {
	Field  string `json:"field"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// An InferenceChange is an inference that is new, for which Before is empty, or
// that got on.
type InferenceChange struct {
	ID     events.InferenceID `json:"inference"`
	Model  events.ModelID     `json:"model,omitempty"`
	Before InferenceStatus    `json:"before,omitempty"`
	After  InferenceStatus    `json:"after"`
	Says   string             `json:"says,omitempty"`   // what the model said, if it ended with that
	Reason string             `json:"reason,omitempty"` // why it failed
}

// A CallChange is an invocation that is new, for which Before is empty, or that
// got on.
type CallChange struct {
	ID     events.ToolInvocationID `json:"invocation"`
	Tool   string                  `json:"tool,omitempty"`
	Tier   events.Tier             `json:"tier"`
	Before ToolInvocationStatus    `json:"before,omitempty"`
	After  ToolInvocationStatus    `json:"after"`
	Output string                  `json:"output,omitempty"` // of a run that completed
	Reason string                  `json:"reason,omitempty"` // why it failed or was rejected
	// Recovered says that its worker told what became of files after a late rollback.
	Recovered bool `json:"recovered,omitempty"`
}

// An ApprovalChange is a question that was put, an answer, or both. A call that
// policy approved has an answer and no question.
type ApprovalChange struct {
	ID       events.ToolInvocationID `json:"invocation"`
	Tool     string                  `json:"tool,omitempty"`
	Tier     events.Tier             `json:"tier"`
	Digest   string                  `json:"digest"`
	Asked    bool                    `json:"asked"`              // between the two
	Deadline *time.Time              `json:"deadline,omitempty"` // of the question
	Answer   string                  `json:"answer,omitempty"`   // approved, denied, expired; empty: it waits
	By       string                  `json:"by,omitempty"`       // policy, rule, or the person
	Reason   string                  `json:"reason,omitempty"`
}

// Compare says what happened between two States of one session, of which b folds
// all that a does and more. What a lacks is new.
func Compare(a, b State) Difference {
	d := Difference{
		Fields:   compareFields(a, b),
		Messages: b.Messages[len(a.Messages):],
		Rules:    b.Rules[len(a.Rules):],
		Alarms:   b.Alarms[len(a.Alarms):],
	}
	for _, after := range b.Inferences {
		before, _ := a.Inference(after.ID)
		if before.Status() != after.Status() || before.StartedSeq != after.StartedSeq {
			d.Inferences = append(d.Inferences, inferenceChange(before, after))
		}
	}
	for _, after := range b.Tools {
		before, _ := a.Tool(after.ID)
		if before.Status() != after.Status() || before.StartedSeq != after.StartedSeq || before.Recovered == nil && after.Recovered != nil {
			d.Calls = append(d.Calls, callChange(before, after))
		}
		if c, ok := approvalChange(before, after); ok {
			d.Approvals = append(d.Approvals, c)
		}
	}
	return d
}

// Empty reports whether nothing happened.
func (d Difference) Empty() bool {
	return len(d.Fields)+len(d.Messages)+len(d.Inferences)+len(d.Calls)+len(d.Approvals)+len(d.Rules)+len(d.Alarms) == 0
}

func compareFields(a, b State) []FieldChange {
	var all []FieldChange
	before, after := fieldsOf(a), fieldsOf(b)
	for k := range after {
		if before[k].value != after[k].value {
			all = append(all, FieldChange{after[k].name, before[k].value, after[k].value})
		}
	}
	return all
}

type field struct{ name, value string }

// fieldsOf is what a session says of itself as a whole, always in this order.
// Figures are those of its activation.
func fieldsOf(s State) []field {
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	var task, model, code, reason string
	if s.Started != nil {
		task, model = s.Started.Task, string(s.Started.Model)
	}
	switch f := s.Outcome.(type) {
	case events.SessionFailed:
		code, reason = string(f.Code), f.Reason
	case events.SessionCancelled:
		reason = f.Reason
	}
	answer, _ := s.Answer()
	return []field{
		{"state", string(s.Status)}, {"task", task}, {"model", model}, {"active_since", count(int(s.Active.Since))},
		{"stage", string(s.Active.Stage)}, {"turns", count(s.Active.Turns)}, {"tool_calls", count(s.Active.ToolCalls)},
		{"tokens", count(s.Active.Tokens)}, {"answer", answer}, {"code", code}, {"reason", reason},
	}
}

func inferenceChange(before, after Inference) InferenceChange {
	c := InferenceChange{ID: after.ID, Before: before.Status(), After: after.Status()}
	if after.Requested != nil {
		c.Model = after.Requested.Model
	}
	switch {
	case after.Done != nil:
		c.Says = after.Done.Reply.Text
	case after.Failure != nil:
		c.Reason = after.Failure.Reason
	}
	return c
}

func callChange(before, after Invocation) CallChange {
	c := CallChange{ID: after.ID, Before: before.Status(), After: after.Status(), Tier: after.Tier()}
	c.Recovered = before.Recovered == nil && after.Recovered != nil
	if after.Requested != nil {
		c.Tool = after.Requested.Request.Tool
	}
	switch f := after.End.(type) {
	case events.ToolExecutionCompleted:
		c.Output = f.Receipt.Output
	case events.ToolExecutionFailed:
		c.Reason = f.Reason
	case events.ToolExecutionRejected:
		c.Reason = f.Reason
	}
	return c
}

// approvalChange reports false when no question was put and none answered.
func approvalChange(before, after Invocation) (ApprovalChange, bool) {
	c := ApprovalChange{ID: after.ID, Tier: after.Tier(), Asked: before.Asked == nil && after.Asked != nil}
	if after.Requested != nil {
		c.Tool = after.Requested.Request.Tool
	}
	if q := after.Asked; q != nil {
		c.Digest, c.Deadline = q.Digest, &q.Deadline
	}
	switch {
	case after.Granted != nil && before.Granted == nil:
		f := after.Granted
		c.Digest, c.Answer, c.By, c.Reason = f.Digest, "approved", f.By, f.Reason
		if f.By == "person" {
			c.By = string(f.Actor)
		}
	case after.Denied != nil && before.Denied == nil:
		c.Answer, c.By, c.Reason = "denied", string(after.Denied.Actor), after.Denied.Reason
	case after.Expired != nil && before.Expired == nil:
		c.Answer = "expired"
	}
	return c, c.Asked || c.Answer != ""
}
