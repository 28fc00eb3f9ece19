package projection

import (
	"correx/internal/session"
	"correx/pkg/events"
)

// project puts a record that holds into the views.
func (w *Writer) project(r events.Record) error {
	if err := w.command(r); err != nil {
		return err
	}
	switch r.Aggregate.Kind {
	case events.KindSession:
		return w.session(r)
	case events.KindInference:
		return w.inference(r)
	case events.KindTool:
		return w.tool(r)
	case events.KindModel:
		return w.model(r)
	case events.KindWorker:
		return w.worker(r)
	case events.KindAudit:
		return w.audit(r)
	}
	return nil
}

func (w *Writer) session(r events.Record) error {
	s, at := r.Aggregate.Session, stamp(r.Time)
	switch f := r.Fact.(type) {
	case events.SessionStarted:
		return w.sessionStarted(r, f)
	case events.MessageAdded:
		return w.message(r, f)
	case events.StageEntered:
		return w.exec(`UPDATE sessions SET stage = ?, turns = turns + 1 WHERE session = ?`, f.Stage, s)
	case events.ApprovalRuleGranted:
		return w.exec(`INSERT INTO rules VALUES (?,?,?,?,?,?,?,?,?)`,
			r.Seq, s, f.Tool, f.Parameters, f.MaxTier.String(), stamp(f.Until), f.Actor, f.Command, at)
	case events.SessionPaused:
		return w.exec(`UPDATE sessions SET state = ?, reason = ? WHERE session = ?`, session.Paused, f.Reason, s)
	case events.SessionResumed:
		return w.reopen(s, f.Reason)
	case events.SessionCompleted:
		return w.exec(`UPDATE sessions SET state = ?, inference = ?, ended_at = ?, reason = '', code = '',
			answer = (SELECT final FROM inferences i WHERE i.session = sessions.session AND i.inference = ?)
			WHERE session = ?`, session.SessionCompleted, f.Inference, at, f.Inference, s)
	case events.SessionFailed:
		return w.exec(`UPDATE sessions SET state = ?, code = ?, reason = ?, ended_at = ? WHERE session = ?`,
			session.SessionFailed, f.Code, f.Reason, at, s)
	case events.SessionCancelled:
		return w.exec(`UPDATE sessions SET state = ?, code = '', reason = ?, ended_at = ? WHERE session = ?`,
			session.SessionCancelled, f.Reason, at, s)
	}
	return nil
}

func (w *Writer) sessionStarted(r events.Record, f events.SessionStarted) error {
	var of, at any = "", nil
	if f.ForkOf != nil {
		of, at = string(f.ForkOf.Session), int64(f.ForkOf.At)
	}
	err := w.exec(`INSERT INTO sessions
		(session, state, task, system, model, capability, tools, mode, limits, generation, actor, command, seq, started_at, fork_of, fork_at)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
		r.Aggregate.Session, session.Running, f.Task, f.System, f.Model, f.Capability, list(f.Tools), f.Mode,
		jsonText(f.Limits), jsonText(f.Generation), f.Actor, f.Command, r.Seq, stamp(r.Time), of, at)
	if err != nil {
		return err
	}
	if f.Say == "" {
		return w.search(r, "task", f.Task)
	}
	err = w.exec(`INSERT INTO messages VALUES (?,?,?,?,?,?,?)`,
		r.Seq, r.Aggregate.Session, events.RoleUser, f.Say, f.Actor, f.Command, stamp(r.Time))
	if err != nil {
		return err
	}
	return w.search(r, "task", f.Task+"\n\n"+f.Say) // one text a record
}

// message adds what somebody said, which lets an ended session go on.
func (w *Writer) message(r events.Record, f events.MessageAdded) error {
	err := w.exec(`INSERT INTO messages VALUES (?,?,?,?,?,?,?)`,
		r.Seq, r.Aggregate.Session, f.Role, f.Text, f.Actor, f.Command, stamp(r.Time))
	if err != nil {
		return err
	}
	err = w.exec(`UPDATE sessions SET state = ?, code = '', reason = '', ended_at = NULL
		WHERE session = ? AND state IN ('COMPLETED', 'FAILED')`, session.Running, r.Aggregate.Session)
	if err != nil {
		return err
	}
	return w.search(r, "message", f.Text)
}

func (w *Writer) reopen(s events.SessionID, reason string) error {
	return w.exec(`UPDATE sessions SET state = ?, code = '', reason = ?, ended_at = NULL WHERE session = ?`,
		session.Running, reason, s)
}

// search makes a text findable; its row has the record's sequence.
func (w *Writer) search(r events.Record, source, text string) error {
	if text == "" {
		return nil
	}
	return w.exec(`INSERT INTO search (rowid, text, session, source, id) VALUES (?,?,?,?,?)`,
		r.Seq, text, r.Aggregate.Session, source, r.Aggregate.ID)
}
