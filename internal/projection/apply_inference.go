package projection

import (
	"correx/internal/session"
	"correx/pkg/events"
)

func (w *Writer) inference(r events.Record) error {
	a := r.Aggregate
	switch f := r.Fact.(type) {
	case events.InferenceRequested:
		return w.exec(`INSERT INTO inferences
			(session, inference, status, stage, model, model_token, through, tools, withdrawn, final_only,
			generation, retry, messages, actor, command, seq, requested_at, deadline)
			VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
			a.Session, a.ID, session.InferenceRequested, f.Stage, f.Model, f.ModelToken, int64(f.Through), list(f.Tools),
			list(f.Withdrawn), f.FinalOnly, jsonText(f.Generation), f.Retry, list(f.Messages),
			f.Actor, f.Command, r.Seq, stamp(r.Time), stamp(f.Deadline))
	case events.InferenceStarted:
		return w.exec(`UPDATE inferences SET status = ?, worker = ?, boot = ?, nonce = ?, attempt = ?,
			started_seq = ?, started_at = ? WHERE session = ? AND inference = ?`,
			session.InferenceStarted, f.Worker, f.Boot, f.Nonce, f.Attempt, r.Seq, stamp(r.Time), a.Session, a.ID)
	case events.InferenceCompleted:
		return w.inferenceCompleted(r, f)
	case events.InferenceFailed:
		return w.inferenceFailed(r, f)
	}
	return nil
}

func (w *Writer) inferenceCompleted(r events.Record, f events.InferenceCompleted) error {
	var final any
	said := f.Reply.Text
	if f.Reply.Final != nil {
		final, said = *f.Reply.Final, *f.Reply.Final
	}
	var timings any
	if len(f.Timings) > 0 {
		timings = jsonText(f.Timings)
	}
	err := w.exec(`UPDATE inferences SET status = ?, text = ?, final = ?, calls = ?, finish_reason = ?,
		prompt_tokens = ?, completion_tokens = ?, total_tokens = ?, cached_tokens = ?, latency_ns = ?,
		timings = ?, prompt_sha256 = ?, cut = ?, tokenizer = ?, end_seq = ?, completed_at = ?
		WHERE session = ? AND inference = ?`,
		session.InferenceCompleted, f.Reply.Text, final, list(f.Reply.Calls), f.Finish,
		f.Usage.Prompt, f.Usage.Completion, f.Usage.Total, f.Usage.Cached, f.Latency.Nanoseconds(),
		timings, f.PromptDigest, f.Cut, f.Tokenizer, r.Seq, stamp(r.Time), r.Aggregate.Session, r.Aggregate.ID)
	if err != nil {
		return err
	}
	if err := w.tokens(r.Aggregate.Session, f.Usage); err != nil {
		return err
	}
	return w.search(r, "answer", said)
}

func (w *Writer) inferenceFailed(r events.Record, f events.InferenceFailed) error {
	err := w.exec(`UPDATE inferences SET status = ?, code = ?, reason = ?, recoverable = ?, text = ?, finish_reason = NULLIF(?, ''),
		prompt_tokens = ?, completion_tokens = ?, total_tokens = ?, cached_tokens = ?, end_seq = ?, completed_at = ?
		WHERE session = ? AND inference = ?`,
		session.InferenceFailed, f.Code, f.Reason, f.Recoverable, f.Text, f.Finish,
		f.Usage.Prompt, f.Usage.Completion, f.Usage.Total, f.Usage.Cached, r.Seq, stamp(r.Time),
		r.Aggregate.Session, r.Aggregate.ID)
	if err != nil {
		return err
	}
	return w.tokens(r.Aggregate.Session, f.Usage)
}

func (w *Writer) tokens(s events.SessionID, u events.TokenUsage) error {
	return w.exec(`UPDATE sessions SET prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,
		total_tokens = total_tokens + ? WHERE session = ?`, u.Prompt, u.Completion, u.Total, s)
}
