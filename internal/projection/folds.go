package projection

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"correx/internal/session"
	"correx/pkg/audit"
	"correx/pkg/events"
)

// maxFolds bounds how many aggregates at work are remembered; what was forgotten
// is folded again from the table events.
const maxFolds = 4096

// folds says which records hold, by the kernel's own folds.
type folds struct {
	w          *Writer
	past       *past // nil: the writer did not begin with the first record
	tools      map[events.Aggregate]session.Invocation
	inferences map[events.Aggregate]session.Inference
	sessions   map[events.SessionID]session.Status
}

func newFolds(w *Writer) folds {
	return folds{
		w:          w,
		tools:      map[events.Aggregate]session.Invocation{},
		inferences: map[events.Aggregate]session.Inference{},
		sessions:   map[events.SessionID]session.Status{},
	}
}

// step folds r. It returns the fact that r stands for, which is another than
// r.Fact for an end that cannot be read, or nil when r does not hold; fault is
// why, or why an end could not be read, or what an announcement says that is not
// believed. Err is the database's.
func (f *folds) step(r events.Record) (fact events.Fact, fault, err error) {
	a := r.Aggregate
	switch {
	case a == events.Aggregate{}: // no subject of a fact
		return nil, r.Err, nil
	case a.Kind == events.KindTool:
		return fold(r, f.past, f.tools, f.invocation, session.Invocation.Step,
			func(i session.Invocation) events.Fact { return i.End })
	case a.Kind == events.KindInference:
		return fold(r, f.past, f.inferences, f.inference, session.Inference.Step, session.Inference.End)
	case r.Err != nil:
		return nil, r.Err, nil
	case a.Kind == events.KindSession:
		return f.session(r)
	case a.Session != events.System:
		return nil, fmt.Errorf("facts of a %s are of %q, not of a session", a.Kind, events.System), nil
	case a.Kind == events.KindCommand:
		return f.command(r)
	case a.Kind == events.KindAudit:
		return f.checkpoint(r)
	}
	if claims := session.Presumes(r); claims != nil {
		return r.Fact, fmt.Errorf("not believed: %s", strings.Join(claims, "; ")), nil
	}
	return r.Fact, nil, nil
}

// fold is one step of an aggregate that comes to an end.
func fold[S any](r events.Record, past *past, known map[events.Aggregate]S, read func(events.Aggregate) (S, error),
	step func(S, events.Record) (S, error), end func(S) events.Fact) (fact events.Fact, fault, err error) {
	before, ok := known[r.Aggregate]
	if !ok && past.has(r.Aggregate) {
		if before, err = read(r.Aggregate); err != nil {
			return nil, nil, err
		}
	}
	after, fault := step(before, r)
	if fault != nil {
		return nil, fault, nil
	}
	if ended := end(after); ended != nil {
		delete(known, r.Aggregate)
		if r.Fact == nil {
			return ended, r.Err, nil
		}
		return r.Fact, nil, nil
	}
	if len(known) >= maxFolds {
		clear(known)
	}
	known[r.Aggregate] = after
	return r.Fact, nil, nil
}

func (f *folds) invocation(a events.Aggregate) (session.Invocation, error) {
	recs, err := f.w.held(a)
	return session.FoldInvocation(recs), err
}

func (f *folds) inference(a events.Aggregate) (session.Inference, error) {
	recs, err := f.w.held(a)
	return session.FoldInference(recs), err
}

// session folds a fact of session.main; its status is all that decides.
func (f *folds) session(r events.Record) (fact events.Fact, fault, err error) {
	id := r.Aggregate.Session
	if id == events.System {
		return nil, fmt.Errorf("no session may be called %q", events.System), nil
	}
	status, ok := f.sessions[id]
	if !ok {
		s, _, err := f.w.conn.text(`SELECT state FROM sessions WHERE session = ?`, id)
		if err != nil {
			return nil, nil, err
		}
		status = session.Status(s)
	}
	after := session.Evolve(session.State{ID: id, Status: status}, r)
	if len(after.Alarms) > 0 {
		return nil, errors.New(after.Alarms[0].Reason), nil
	}
	if len(f.sessions) >= maxFolds {
		clear(f.sessions)
	}
	f.sessions[id] = after.Status
	return r.Fact, nil, nil
}

// command lets a command be rejected once, and not after a fact cited it.
func (f *folds) command(r events.Record) (fact events.Fact, fault, err error) {
	status, found, err := f.w.conn.text(`SELECT status FROM commands WHERE command = ?`, r.Aggregate.ID)
	if err != nil {
		return nil, nil, err
	}
	if found {
		return nil, fmt.Errorf("rejected may not follow %s", status), nil
	}
	return r.Fact, nil, nil
}

// checkpoint lets those stand that say what they are: of this stream, about what
// is before them, and signed by the key that they name. Whether that key is to be
// trusted, and what they say is so, is for an audit to find.
func (f *folds) checkpoint(r events.Record) (fact events.Fact, fault, err error) {
	c, ok := r.Fact.(events.AuditCheckpoint)
	if !ok {
		return r.Fact, nil, nil
	}
	of := audit.Identity(f.w.db.id)
	switch {
	case r.Aggregate != audit.Checkpoints():
		return nil, fmt.Errorf("checkpoints are of %s", audit.Checkpoints()), nil
	case !audit.Of(c).Is(of):
		return nil, fmt.Errorf("the checkpoint is of %s, this is %s", audit.Of(c), of), nil
	case c.Through >= r.Seq:
		return nil, fmt.Errorf("the checkpoint is through %d, which was not there yet", c.Through), nil
	}
	if err := audit.Check(c); err != nil {
		return nil, err, nil
	}
	return r.Fact, nil, nil
}

// held reads the records of an aggregate that hold, as they were when they were
// applied.
func (w *Writer) held(a events.Aggregate) (recs []events.Record, err error) {
	err = w.conn.each(func(row []driver.Value) error {
		r, err := recordOf(row)
		recs = append(recs, r)
		return err
	}, `SELECT seq, time, subject, headers, body, error FROM events
		WHERE session = ? AND kind = ? AND id = ? AND holds ORDER BY seq`, a.Session, a.Kind, a.ID)
	return recs, err
}

// recordOf decodes a row of events.
func recordOf(row []driver.Value) (events.Record, error) {
	seq, _ := row[0].(int64)
	at, _ := row[1].(string)
	subject, _ := row[2].(string) // one that is no text never holds
	headers, _ := row[3].(string)
	stored, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return events.Record{}, fmt.Errorf("time of event %d: %w", seq, err)
	}
	h, err := parseHeaders(headers)
	if err != nil {
		return events.Record{}, fmt.Errorf("headers of event %d: %w", seq, err)
	}
	r := events.Decode(uint64(seq), stored, subject, h, bytesOf(row[4]))
	if fault, ok := row[5].(string); ok && r.Err == nil {
		r.Fact, r.Err = nil, errors.New(fault)
	}
	return r, nil
}

// bytesOf is a body, which is a TEXT or a BLOB.
func bytesOf(v driver.Value) []byte {
	switch v := v.(type) {
	case string:
		return []byte(v)
	case []byte:
		return bytes.Clone(v)
	}
	return nil
}
