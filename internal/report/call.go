package report

import (
	"time"

	"correx/pkg/audit"
	"correx/pkg/events"
)

// tool folds a record of a call and tells what it adds.
func (b *builder) tool(r events.Record) error {
	c := b.calls[r.Aggregate]
	if c == nil {
		c = &call{out: &Call{ID: r.Aggregate.ID, Records: []Record{}}}
	}
	next, err := c.fold.Step(r)
	if err != nil {
		return err
	}
	if b.calls[r.Aggregate] == nil {
		b.calls[r.Aggregate] = c
		b.r.Steps = append(b.r.Steps, Step{Where: where(r), Call: c.out})
	}
	c.fold = next
	fact := r.Fact
	if fact == nil {
		fact = next.End // one that cannot be read
	}
	if fact != nil {
		b.tell(c, r, fact)
	}
	c.out.Status, c.out.Tier = string(next.Status()), next.Tier().String()
	hash := b.hasher.Event(audit.Event{Seq: r.Seq, Time: r.Time, Subject: r.Subject, Header: r.Header, Data: r.Data})
	name := ""
	if fact != nil {
		name = string(fact.FactName())
	}
	c.out.Records = append(c.out.Records, Record{where(r), name, hash.String()})
	return r.Err
}

// tell adds what a record says to a call.
func (b *builder) tell(c *call, r events.Record, fact events.Fact) {
	out := c.out
	switch f := fact.(type) {
	case events.ToolInvocationRequested:
		out.Tool, out.AskedBy, out.Follows = f.Request.Tool, askedBy(f), string(f.Follows)
		out.Parameters = parameters(f.Request.Parameters)
	case events.ToolPreviewed:
		out.Preview = &Preview{where(r), string(f.Worker), f.Valid, f.Reason, f.Diff, f.Base, f.Affected, f.Notes}
	case events.ApprovalRequested:
		out.Question = &Question{where(r), f.Why, f.Notes, f.Digest, f.Deadline.UTC()}
	case events.ApprovalGranted:
		out.Answer = b.granted(c, r, f)
	case events.ApprovalDenied:
		out.Answer = &Answer{Where: where(r), What: "denied", By: "person", Actor: string(f.Actor), Command: string(f.Command),
			Reason: f.Reason, Waited: waited(out.Question, r)}
	case events.ApprovalExpired:
		out.Answer = &Answer{Where: where(r), What: "expired", Reason: "nobody answered", Waited: waited(out.Question, r)}
	case events.ToolExecutionStarted:
		out.Run = &Run{where(r), string(f.Worker), f.Attempt, string(f.Isolation)}
	case events.ToolExecutionCompleted:
		out.Result = resultOf(r, "succeeded", &f.Receipt)
		b.affected = append(b.affected, f.Receipt.Affected...)
	case events.ToolExecutionFailed:
		out.Result = resultOf(r, "failed", f.Receipt)
		out.Result.Reason, out.Result.Effects = f.Reason, string(f.Effects)
	case events.ToolExecutionRejected:
		out.Result = &Result{Where: where(r), Status: "never ran", Reason: f.Reason}
	case events.Recovered:
		out.Recovered = f.Files
	}
}

// granted tells an approval, and holds it against what it is for and who signed.
func (b *builder) granted(c *call, r events.Record, f events.ApprovalGranted) *Answer {
	until := f.Until.UTC()
	a := &Answer{Where: where(r), What: "approved", By: f.By, Actor: string(f.Actor), Command: string(f.Command),
		Waited: waited(c.out.Question, r), Scope: string(f.Scope), Reason: f.Reason, Policy: f.Policy, Until: &until,
		Digest: f.Digest, Matches: c.fold.Digest(f.Policy) == f.Digest, Key: f.Key, Signature: "not looked at"}
	if b.o.Verify == nil {
		return a
	}
	if err := b.o.Verify(r); err != nil {
		a.Signature = err.Error()
		return a
	}
	a.Signature, a.Verified = "by the kernel's key", true
	return a
}

func waited(q *Question, r events.Record) time.Duration {
	if q == nil {
		return 0
	}
	return r.Time.Sub(q.Time)
}

func resultOf(r events.Record, status string, t *events.ToolReceipt) *Result {
	out := &Result{Where: where(r), Status: status}
	if t == nil {
		return out
	}
	exit := t.ExitCode
	out.ExitCode, out.Duration, out.Isolation = &exit, t.Duration, string(t.Isolation)
	out.Affected, out.Diff, out.Output, out.Artifacts = t.Affected, t.Diff, t.Output, t.Artifacts
	return out
}
