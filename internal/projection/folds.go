package projection

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"correx/internal/session"
	"correx/pkg/events"
)

// maxFolds bounds how many aggregates at work are remembered; what was forgotten
// is folded again from the table events.
const maxFolds = 4096

// folds says which records hold, by the kernel's own folds.
type folds struct {
	w          *Writer
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
// why, or why an end could not be read. Err is the database's.
func (f *folds) step(r events.Record) (fact events.Fact, fault, err error) {
	a := r.Aggregate
	switch {
	case a == events.Aggregate{}: // no subject of a fact
		return nil, r.Err, nil
	case a.Kind == events.KindTool:
		return fold(r, f.tools, f.invocation, session.Invocation.Step,
			func(i session.Invocation) events.Fact { return i.End })
	case a.Kind == events.KindInference:
		return fold(r, f.inferences, f.inference, session.Inference.Step, session.Inference.End)
	case r.Err != nil:
		return nil, r.Err, nil
	case a.Kind == events.KindSession:
		return f.session(r)
	case a.Session != events.System:
		return nil, fmt.Errorf("facts of a %s are of %q, not of a session", a.Kind, events.System), nil
	case a.Kind == events.KindCommand:
		return f.command(r)
	}
	return r.Fact, nil, nil
}

// fold is one step of an aggregate that comes to an end.
func fold[S any](r events.Record, known map[events.Aggregate]S, read func(events.Aggregate) (S, error),
	step func(S, events.Record) (S, error), end func(S) events.Fact) (fact events.Fact, fault, err error) {
	before, ok := known[r.Aggregate]
	if !ok {
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
		var s string
		if _, err := f.w.row(`SELECT state FROM sessions WHERE session = ?`, []any{id}, &s); err != nil {
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
	var status string
	found, err := f.w.row(`SELECT status FROM commands WHERE command = ?`, []any{r.Aggregate.ID}, &status)
	if err != nil {
		return nil, nil, err
	}
	if found {
		return nil, fmt.Errorf("rejected may not follow %s", status), nil
	}
	return r.Fact, nil, nil
}

// held reads the records of an aggregate that hold, as they were when they were
// applied.
func (w *Writer) held(a events.Aggregate) ([]events.Record, error) {
	s, err := w.prepared(`SELECT seq, time, subject, headers, body, error FROM events
		WHERE session = ? AND kind = ? AND id = ? AND holds ORDER BY seq`)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(context.Background(), a.Session, a.Kind, a.ID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var recs []events.Record
	for rows.Next() {
		r, err := scanRecord(rows)
		if err != nil {
			return nil, err
		}
		recs = append(recs, r)
	}
	return recs, rows.Err()
}

func scanRecord(rows *sql.Rows) (events.Record, error) {
	var seq uint64
	var at, subject, headers string
	var body []byte
	var fault sql.NullString
	if err := rows.Scan(&seq, &at, &subject, &headers, &body, &fault); err != nil {
		return events.Record{}, err
	}
	stored, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return events.Record{}, fmt.Errorf("time of event %d: %w", seq, err)
	}
	var h events.Header
	if err := json.Unmarshal([]byte(headers), &h); err != nil {
		return events.Record{}, fmt.Errorf("headers of event %d: %w", seq, err)
	}
	r := events.Decode(seq, stored, subject, h, body)
	if r.Err == nil && fault.Valid {
		r.Fact, r.Err = nil, errors.New(fault.String)
	}
	return r, nil
}
