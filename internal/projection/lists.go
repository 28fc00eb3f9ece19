package projection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// indexSQL has an index for each way in which a list can be asked for, so that
// none of them reads a whole table. Indexes are no part of the schema's version:
// a database that was made without them gets them when it is opened.
const indexSQL = `
CREATE INDEX IF NOT EXISTS sessions_state ON sessions (state, seq);
CREATE INDEX IF NOT EXISTS sessions_model ON sessions (model, seq);
CREATE INDEX IF NOT EXISTS inferences_session ON inferences (session, seq);
CREATE INDEX IF NOT EXISTS invocations_seq ON invocations (seq);
CREATE INDEX IF NOT EXISTS invocations_session ON invocations (session, seq);
CREATE INDEX IF NOT EXISTS invocations_tool ON invocations (tool, seq);
CREATE INDEX IF NOT EXISTS approvals_seq ON approvals (seq);
CREATE INDEX IF NOT EXISTS approvals_status ON approvals (status, seq);
DROP INDEX IF EXISTS approvals_pending;
CREATE INDEX IF NOT EXISTS commands_status ON commands (status, seq);`

// The states that the lists know.
var (
	sessionStates  = []string{"RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"}
	approvalStates = []string{"PENDING", "GRANTED", "DENIED", "EXPIRED", "WITHDRAWN", "ALL"}
	workerStates   = []string{"RUNNING", "STOPPED"}
	commandStates  = []string{"CARRIED_OUT", "REJECTED"}
)

// A listing is a statement in the making: one table by seq, from the cursor on.
// The cursor is parameter 1, the limit parameter 2.
type listing struct {
	read   string // SELECT … FROM …
	seq    string // the column that orders
	oldest bool   // the oldest rows come first
	where  []string
	args   []any
}

// and adds a condition, in which a ? is the value; an empty value asks nothing.
func (l *listing) and(condition, value string) {
	if value == "" {
		return
	}
	l.args = append(l.args, value)
	l.where = append(l.where, strings.Replace(condition, "?", fmt.Sprintf("?%d", len(l.args)+2), 1))
}

// between bounds seq: from is the first, to the first beyond; 0 is no bound.
func (l *listing) between(from, to uint64) {
	if from > 0 {
		l.where = append(l.where, fmt.Sprintf("%s >= %d", l.seq, from))
	}
	if to > 0 {
		l.where = append(l.where, fmt.Sprintf("%s < %d", l.seq, to))
	}
}

// sql is the statement. Its cursor always bounds seq, so that the index is used.
func (l *listing) sql() string {
	bound, order := l.seq+" < ?1", l.seq+" DESC"
	if l.oldest {
		bound, order = l.seq+" > ?1", l.seq
	}
	return fmt.Sprintf("%s WHERE %s ORDER BY %s LIMIT ?2", l.read, strings.Join(append(l.where, bound), " AND "), order)
}

func sessionList(r Request) listing {
	l := listing{read: `SELECT s.* FROM sessions s`, seq: "s.seq"}
	l.and("s.state = ?", r.State)
	l.and("s.model = ?", r.Model)
	l.and("EXISTS (SELECT 1 FROM invocations i WHERE i.session = s.session AND +i.tool = ?)", r.Tool)
	if r.Text != "" {
		l.and("+s.session IN (SELECT session FROM search WHERE "+searchMatch+")", searchText(r.Text))
	}
	return l
}

func invocationList(r Request) listing {
	l := listing{read: `SELECT * FROM invocations`, seq: "seq"}
	l.and("session = ?", r.Session)
	tool := "tool = ?"
	if r.Session != "" {
		tool = "+tool = ?" // a session is less than all calls of a tool
	}
	l.and(tool, r.Tool)
	return l
}

func commandList(r Request) listing {
	l := listing{read: `SELECT * FROM commands`, seq: "seq"}
	l.and("status = ?", r.State)
	return l
}

func searchList(r Request) listing {
	l := listing{read: `SELECT rowid AS seq, session, source, id, text FROM search`, seq: "rowid"}
	l.and(searchMatch, searchText(r.Text))
	l.and("session = ?", r.Session)
	return l
}

// approvalList is what waits, the oldest first; in another state, or in all, the
// newest first. Waited_s are seconds from the question to its answer.
func approvalList(r Request) listing {
	l := listing{seq: "a.seq", oldest: r.State == "" || r.State == "PENDING", read: `
	SELECT a.session, a.invocation, a.status, a.tool, max(a.tier, i.tier) AS tier, a.digest, i.parameters, i.preview_diff AS diff,
		i.preview_affected AS affected, i.preview_notes, i.follows, a.why, a.notes, a.deadline, a.requested_at, i.stage, i.actor,
		a.policy_version, a.answered_at, a.answered_by, a.actor AS answered_as, a.scope, a.reason,
		round((julianday(a.answered_at) - julianday(a.requested_at)) * 86400, 3) AS waited_s, a.seq
	FROM approvals a CROSS JOIN invocations i ON i.session = a.session AND i.invocation = a.invocation`}
	switch r.State {
	case "ALL":
	case "":
		l.and("a.status = ?", "PENDING")
	default:
		l.and("a.status = ?", r.State)
	}
	l.and("a.session = ?", r.Session)
	return l
}

// check says what is wrong with r, naming the field.
func (q Query) check(r Request) error {
	for _, f := range []struct{ name, value string }{
		{"session", r.Session}, {"state", r.State}, {"tool", r.Tool}, {"model", r.Model}, {"text", r.Text}, {"since", r.Since}, {"until", r.Until},
	} {
		if f.value != "" && !slices.Contains(q.takes, f.name) {
			return fmt.Errorf("%s: query.%s does not take it; it takes %s", f.name, q.Name,
				strings.Join(append(slices.Clone(q.takes), "limit, cursor, wait_for"), ", "))
		}
	}
	switch {
	case q.need == "session" && r.Session == "":
		return fmt.Errorf("session is missing: which one?")
	case q.need == "text" && strings.TrimSpace(r.Text) == "":
		return fmt.Errorf("text is missing: what should be searched for?")
	case r.State != "" && !slices.Contains(q.states, r.State):
		return fmt.Errorf("state is %q; use one of %s", strings.ToLower(r.State), strings.ToLower(strings.Join(q.states, ", ")))
	case r.Limit < 0 || r.Limit > maxLimit:
		return fmt.Errorf("limit is %d; use 1 to %d", r.Limit, maxLimit)
	case r.Cursor > 1<<62:
		return fmt.Errorf("cursor is %d; use the next of the answer before", r.Cursor)
	}
	return nil
}

// bounds are the sequences of the times that r asks for; 0 is no bound.
func (q *Queries) bounds(ctx context.Context, r Request) (from, to uint64, err error) {
	for _, f := range []struct {
		name, value string
		seq         *uint64
	}{{"since", r.Since, &from}, {"until", r.Until, &to}} {
		if f.value == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, f.value)
		if err != nil {
			return 0, 0, fmt.Errorf("%s is %q; use a time like 2026-01-31T15:04:05Z", f.name, f.value)
		}
		if *f.seq, err = q.seqAt(ctx, stamp(at)); err != nil {
			return 0, 0, err
		}
	}
	return from, to, nil
}

// seqAt is the first sequence that is not before t, or the one behind the last.
// A stream's times grow with its sequences, so that it can be found by halving.
func (q *Queries) seqAt(ctx context.Context, t string) (uint64, error) {
	var low, high uint64
	err := q.db.read.QueryRowContext(ctx, `SELECT coalesce((SELECT min(seq) FROM events), 1), coalesce((SELECT max(seq) FROM events), 0) + 1`).Scan(&low, &high)
	for err == nil && low < high {
		middle := low + (high-low)/2
		var before bool
		err = q.db.read.QueryRowContext(ctx, `SELECT time < ? FROM events WHERE seq = ?`, t, int64(middle)).Scan(&before)
		if before {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if err != nil {
		return 0, fmt.Errorf("find the sequence at %s: %w", t, err)
	}
	return low, nil
}
