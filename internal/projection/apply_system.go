package projection

import (
	"correx/internal/session"
	"correx/pkg/events"
)

// worker keeps the latest announcement of each worker, and what it offers.
func (w *Writer) worker(r events.Record) error {
	switch f := r.Fact.(type) {
	case events.WorkerStarted:
		return w.workerStarted(r, f)
	case events.WorkerStopped:
		return w.exec(`UPDATE workers SET state = 'STOPPED', stopped_seq = ?, stopped_at = ?, reason = ?
			WHERE worker = ? AND boot = ?`, r.Seq, stamp(r.Time), f.Reason, r.Aggregate.ID, f.Boot)
	}
	return nil
}

func (w *Writer) workerStarted(r events.Record, f events.WorkerStarted) error {
	var settings any
	if s := session.SettingsOf(f); s != nil {
		settings = jsonText(s)
	}
	id := r.Aggregate.ID
	err := w.exec(`INSERT INTO workers
		(worker, role, state, boot, host, pid, version, concurrency, settings, starts, seq, started_at)
		VALUES (?,?,'RUNNING',?,?,?,?,?,?,1,?,?)
		ON CONFLICT DO UPDATE SET role = excluded.role, state = excluded.state, boot = excluded.boot,
		host = excluded.host, pid = excluded.pid, version = excluded.version, concurrency = excluded.concurrency,
		settings = excluded.settings, starts = starts + 1, seq = excluded.seq, started_at = excluded.started_at,
		stopped_seq = NULL, stopped_at = NULL, reason = NULL`,
		id, f.Role, f.Boot, f.Host, f.PID, f.Version, f.Concurrency, settings, r.Seq, stamp(r.Time))
	if err != nil {
		return err
	}
	if err := w.offeredTools(r, session.ToolsOf(f)); err != nil {
		return err
	}
	return w.offeredModels(r, session.ModelsOf(f))
}

func (w *Writer) offeredTools(r events.Record, tools []events.ToolOffer) error {
	if err := w.exec(`DELETE FROM tools WHERE worker = ?`, r.Aggregate.ID); err != nil {
		return err
	}
	for _, t := range tools {
		var example any
		if t.Example != nil {
			example = jsonText(t.Example)
		}
		schema := raw(t.Schema)
		if schema == nil {
			schema = "null"
		}
		err := w.exec(`INSERT OR REPLACE INTO tools VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
			r.Aggregate.ID, t.Name, t.Token, t.Description, t.Tier.String(), list(t.Capabilities),
			schema, t.Digest, t.Previews, t.Idempotent, example, t.Isolation, t.FollowUpOnly, t.Origin, r.Seq)
		if err != nil {
			return err
		}
	}
	return nil
}

// offeredModels takes the worker's models as unloaded: it has just begun, and no
// llama-server outlives its worker.
func (w *Writer) offeredModels(r events.Record, models []events.ModelOffer) error {
	worker, at := r.Aggregate.ID, stamp(r.Time)
	err := w.exec(`UPDATE models SET offered = 0, state = 'UNLOADED', pid = NULL, log = NULL,
		reason = 'its worker started anew',
		seq = ?, time = ? WHERE worker = ?`, r.Seq, at, worker)
	if err != nil {
		return err
	}
	for _, m := range models {
		err := w.exec(`INSERT INTO models
			(id, worker, model, model_token, offered, context_size, capabilities, residency_mode, state, seq, time)
			VALUES (?,?,?,?,1,?,?,?,'UNLOADED',?,?)
			ON CONFLICT DO UPDATE SET model = excluded.model, model_token = excluded.model_token, offered = 1,
			context_size = excluded.context_size, capabilities = excluded.capabilities,
			residency_mode = excluded.residency_mode`,
			events.ModelAggregateID(events.WorkerID(worker), m.Token), worker, m.Name, m.Token, m.ContextSize,
			list(m.Capabilities), m.ResidencyMode, r.Seq, at)
		if err != nil {
			return err
		}
	}
	return nil
}

// model keeps what a model's worker last reported of it.
func (w *Writer) model(r events.Record) error {
	switch f := r.Fact.(type) {
	case events.ModelLoadRequested:
		return w.modelState(r, f.Worker, f.Model, "LOAD_REQUESTED", modelReport{})
	case events.ModelLoaded:
		return w.modelState(r, f.Worker, f.Model, "LOADED", modelReport{pid: f.PID, context: f.ContextSize,
			latency: f.Latency.Nanoseconds(), server: f.Server})
	case events.ModelUnloadRequested:
		return w.exec(`UPDATE models SET state = 'UNLOAD_REQUESTED', force = ?, seq = ?, time = ? WHERE id = ?`,
			f.Force, r.Seq, stamp(r.Time), r.Aggregate.ID)
	case events.ModelUnloaded:
		return w.modelState(r, f.Worker, f.Model, "UNLOADED", modelReport{reason: f.Reason})
	case events.ModelCrashed:
		return w.modelState(r, f.Worker, f.Model, "CRASHED",
			modelReport{exit: f.ExitCode, signal: f.Signal, log: list(f.Log)})
	case events.ModelLoadFailed:
		return w.modelState(r, f.Worker, f.Model, "LOAD_FAILED", modelReport{reason: f.Reason, log: list(f.Log)})
	}
	return nil
}

// A modelReport is what a state of a model comes with; the rest is NULL.
type modelReport struct {
	pid, context   any
	latency        any
	server, reason string
	exit           any
	signal         string
	log            any
}

func (w *Writer) modelState(r events.Record, worker events.WorkerID, model events.ModelID, state string, m modelReport) error {
	return w.exec(`INSERT INTO models
		(id, worker, model, offered, state, pid, loaded_context, latency_ns, server, reason, exit_code, signal, log, seq, time)
		VALUES (?,?,?,0,?,?,?,?,?,?,?,?,?,?,?)
		ON CONFLICT DO UPDATE SET state = excluded.state, pid = excluded.pid, loaded_context = excluded.loaded_context,
		latency_ns = excluded.latency_ns, server = excluded.server, force = NULL, reason = excluded.reason,
		exit_code = excluded.exit_code, signal = excluded.signal, log = excluded.log, seq = excluded.seq, time = excluded.time`,
		r.Aggregate.ID, worker, model, state, m.pid, m.context, m.latency, maybe(m.server), maybe(m.reason),
		m.exit, maybe(m.signal), m.log, r.Seq, stamp(r.Time))
}

// command keeps the commands that were rejected, and those that a fact cites.
func (w *Writer) command(r events.Record) error {
	a, at := r.Aggregate, stamp(r.Time)
	if f, ok := r.Fact.(events.CommandRejected); ok {
		return w.exec(`INSERT INTO commands VALUES (?,'REJECTED',?,?,?,?,?,?,1,?,?)`,
			a.ID, f.Actor, f.Subject, list(f.Reasons), f.FactName(), a.Session, a.ID, r.Seq, at)
	}
	d, ok := r.Fact.(interface{ Decided() events.Decision })
	if !ok || d.Decided().Command == "" {
		return nil
	}
	return w.exec(`INSERT INTO commands VALUES (?,'CARRIED_OUT',?,NULL,NULL,?,?,?,1,?,?)
		ON CONFLICT DO UPDATE SET facts = facts + 1`,
		d.Decided().Command, d.Decided().Actor, r.Fact.FactName(), a.Session, a.ID, r.Seq, at)
}

func (w *Writer) audit(r events.Record) error {
	f, ok := r.Fact.(events.AuditCheckpoint)
	if !ok {
		return nil
	}
	return w.exec(`INSERT INTO audit VALUES (?,?,?,?,?,?,?,?,?)`,
		r.Seq, r.Aggregate.ID, int64(f.Through), f.Chain, f.Root, int64(f.Previous), f.Key, f.Signature, stamp(r.Time))
}
