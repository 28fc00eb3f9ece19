package projection

import (
	"correx/internal/session"
	"correx/pkg/events"
)

func (w *Writer) tool(r events.Record) error {
	a := r.Aggregate
	switch f := r.Fact.(type) {
	case events.ToolInvocationRequested:
		return w.toolRequested(r, f)
	case events.ToolPreviewed:
		return w.exec(`UPDATE invocations SET status = ?, previewed_seq = ?, previewed_at = ?, preview_worker = ?,
			preview_valid = ?, preview_reason = ?, preview_diff = ?, preview_base = ?, preview_affected = ?,
			preview_notes = ?, tier = max(tier, ?) WHERE session = ? AND invocation = ?`,
			session.Previewed, r.Seq, stamp(r.Time), f.Worker, f.Valid, f.Reason, f.Diff, list(f.Base), list(f.Affected), list(f.Notes),
			f.Tier.String(), a.Session, a.ID)
	case events.ApprovalRequested, events.ApprovalGranted, events.ApprovalDenied, events.ApprovalExpired:
		return w.approval(r)
	case events.ToolExecutionStarted:
		return w.exec(`UPDATE invocations SET status = ?, worker = ?, boot = ?, nonce = ?, attempt = ?, isolation = ?,
			started_seq = ?, started_at = ? WHERE session = ? AND invocation = ?`,
			session.Started, f.Worker, f.Boot, f.Nonce, f.Attempt, f.Isolation, r.Seq, stamp(r.Time), a.Session, a.ID)
	case events.CancelRequested:
		return w.exec(`UPDATE invocations SET status = ?, cancel_seq = ?, cancel_reason = ?
			WHERE session = ? AND invocation = ?`, session.CancelRequested, r.Seq, f.Reason, a.Session, a.ID)
	case events.ToolExecutionCompleted:
		if err := w.ended(r, session.Completed); err != nil {
			return err
		}
		return w.receipt(r, f.Receipt)
	case events.ToolExecutionFailed:
		return w.toolFailed(r, f)
	case events.ToolExecutionRejected:
		return w.toolRejected(r, f)
	case events.Recovered:
		return w.exec(`UPDATE invocations SET recovered_seq = ?, recovered_by = ?, recovered = ?
			WHERE session = ? AND invocation = ?`, r.Seq, f.Worker, list(f.Files), a.Session, a.ID)
	}
	return nil
}

func (w *Writer) toolRequested(r events.Record, f events.ToolInvocationRequested) error {
	a := r.Aggregate
	parameters := raw(f.Request.Parameters)
	if parameters == nil {
		parameters = "null"
	}
	err := w.exec(`INSERT INTO invocations
		(session, invocation, status, tool, tool_token, tier, stage, parameters, offer_digest, preview_by,
		actor, command, follows, seq, requested_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
		a.Session, a.ID, session.Requested, f.Request.Tool, f.Token, f.Tier.String(), f.Request.Stage,
		parameters, f.Offer, when(f.PreviewBy), f.Actor, f.Command, f.Follows, r.Seq, stamp(r.Time))
	if err != nil || a.Session == events.System || f.Follows != "" {
		return err
	}
	return w.exec(`UPDATE sessions SET tool_calls = tool_calls + 1 WHERE session = ?`, a.Session)
}

func (w *Writer) ended(r events.Record, status session.ToolInvocationStatus) error {
	return w.exec(`UPDATE invocations SET status = ?, end_seq = ?, completed_at = ?
		WHERE session = ? AND invocation = ?`, status, r.Seq, stamp(r.Time), r.Aggregate.Session, r.Aggregate.ID)
}

// receipt keeps what a run did.
func (w *Writer) receipt(r events.Record, t events.ToolReceipt) error {
	var metadata, followUp any
	if t.FollowUp != nil {
		followUp = jsonText(t.FollowUp)
	}
	if len(t.Metadata) > 0 {
		metadata = jsonText(t.Metadata)
	}
	err := w.exec(`UPDATE invocations SET exit_code = ?, output = ?, structured_output = ?, affected_entities = ?,
		duration_ns = ?, receipt_tier = ?, receipt_timestamp = ?, metadata = ?, diff = ?, receipt_isolation = ?,
		artifacts = ?, follow_up = ? WHERE session = ? AND invocation = ?`,
		t.ExitCode, t.Output, raw(t.Structured), list(t.Affected),
		t.Duration.Nanoseconds(), t.Tier.String(), when(t.Time), metadata, t.Diff, t.Isolation,
		list(t.Artifacts), followUp, r.Aggregate.Session, r.Aggregate.ID)
	if err != nil {
		return err
	}
	return w.search(r, "output", t.Output)
}

func (w *Writer) toolFailed(r events.Record, f events.ToolExecutionFailed) error {
	if err := w.ended(r, session.Failed); err != nil {
		return err
	}
	err := w.exec(`UPDATE invocations SET reason = ?, recoverable = ?, effects = ? WHERE session = ? AND invocation = ?`,
		f.Reason, f.Recoverable, f.Effects, r.Aggregate.Session, r.Aggregate.ID)
	if err != nil || f.Receipt == nil {
		return err
	}
	return w.receipt(r, *f.Receipt)
}

func (w *Writer) toolRejected(r events.Record, f events.ToolExecutionRejected) error {
	if err := w.ended(r, session.Rejected); err != nil {
		return err
	}
	a := r.Aggregate
	err := w.exec(`UPDATE invocations SET reason = ?, rejected_by = ?, denied = ?, expired = ?
		WHERE session = ? AND invocation = ?`,
		f.Reason, f.Worker, f.Denied, f.Expired, a.Session, a.ID)
	if err != nil {
		return err
	}
	return w.exec(`UPDATE approvals SET status = 'WITHDRAWN', answered_seq = ?, answered_at = ?, reason = ?
		WHERE session = ? AND invocation = ? AND status = 'PENDING'`,
		r.Seq, stamp(r.Time), f.Reason, a.Session, a.ID)
}

// approval keeps questions and answers. What runs by policy was never asked:
// its row begins with the answer.
func (w *Writer) approval(r events.Record) error {
	a, at := r.Aggregate, stamp(r.Time)
	status, tier := session.ApprovalRequested, events.T0
	var err error
	switch f := r.Fact.(type) {
	case events.ApprovalRequested:
		tier = f.Tier
		err = w.exec(`INSERT INTO approvals (session, invocation, status, tool, tool_token, tier, digest, policy_version,
			why, notes, deadline, seq, requested_at) VALUES (?,?,'PENDING',?,?,?,?,?,?,?,?,?,?)`,
			a.Session, a.ID, f.Tool, f.Token, f.Tier.String(), f.Digest, f.Policy, f.Why, list(f.Notes),
			stamp(f.Deadline), r.Seq, at)
	case events.ApprovalGranted:
		status, tier, err = session.Approved, f.Tier, w.granted(r, f)
	case events.ApprovalDenied:
		status = session.Denied
		err = w.exec(`UPDATE approvals SET status = 'DENIED', answered_seq = ?, answered_at = ?, answered_by = 'person',
			actor = ?, command = ?, reason = ? WHERE session = ? AND invocation = ?`,
			r.Seq, at, f.Actor, f.Command, f.Reason, a.Session, a.ID)
	case events.ApprovalExpired:
		status = session.Expired
		err = w.exec(`UPDATE approvals SET status = 'EXPIRED', answered_seq = ?, answered_at = ?
			WHERE session = ? AND invocation = ?`, r.Seq, at, a.Session, a.ID)
	}
	if err != nil {
		return err
	}
	return w.exec(`UPDATE invocations SET status = ?, tier = max(tier, ?) WHERE session = ? AND invocation = ?`,
		status, tier.String(), a.Session, a.ID)
}

func (w *Writer) granted(r events.Record, f events.ApprovalGranted) error {
	return w.exec(`INSERT INTO approvals (session, invocation, status, tool, tool_token, tier, digest, policy_version,
		seq, answered_seq, answered_at, answered_by, actor, command, scope, reason, until, key, signature)
		VALUES (?,?,'GRANTED',?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT DO UPDATE SET status = excluded.status, tier = excluded.tier, digest = excluded.digest,
		policy_version = excluded.policy_version, answered_seq = excluded.answered_seq,
		answered_at = excluded.answered_at, answered_by = excluded.answered_by, actor = excluded.actor,
		command = excluded.command, scope = excluded.scope, reason = excluded.reason, until = excluded.until,
		key = excluded.key, signature = excluded.signature`,
		r.Aggregate.Session, r.Aggregate.ID, f.Tool, f.Token, f.Tier.String(), f.Digest, f.Policy,
		r.Seq, r.Seq, stamp(r.Time), f.By, f.Actor, f.Command, f.Scope, f.Reason, stamp(f.Until), f.Key, f.Signature)
}
