package projection

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// A Request is what a query may ask; each query says which fields it takes.
type Request struct {
	Session string `json:"session,omitempty"`
	State   string `json:"state,omitempty"` // of sessions, approvals, workers, commands; any case
	Tool    string `json:"tool,omitempty"`
	Model   string `json:"model,omitempty"`
	Since   string `json:"since,omitempty"`    // RFC 3339: rows that were opened then or later
	Until   string `json:"until,omitempty"`    // RFC 3339: rows that were opened before
	Text    string `json:"text,omitempty"`     // to search for
	Limit   int    `json:"limit,omitempty"`    // rows at most; default 100
	Cursor  uint64 `json:"cursor,omitempty"`   // the next of the answer before
	WaitFor uint64 `json:"wait_for,omitempty"` // answer when this sequence is applied
}

// An Answer is a page of rows. Each is an object whose keys are the columns of
// the database, and whose seq orders the rows.
type Answer struct {
	OK    bool              `json:"ok"`
	Error string            `json:"error,omitempty"`
	Items []json.RawMessage `json:"items"`
	More  bool              `json:"more,omitempty"` // there are more: ask again with Next as the cursor
	Next  uint64            `json:"next,omitempty"`
}

// A Query is one question.
type Query struct {
	Name   string // behind "query."
	What   string // for people
	takes  []string
	states []string // that may be asked for
	need   string   // names a field that must be given
	list   func(Request) listing
	fixed  string // instead of a list: a statement about a table that stays small
}

const maxLimit = 1000

// The small tables page by seq, from the oldest on.
const newer = `seq > ?1 ORDER BY seq LIMIT ?2`

// AllQueries is every question that can be asked, in the order of their names.
func AllQueries() []Query {
	return []Query{
		{Name: "approvals", What: "questions that wait for a person; with a state, or all, what was answered, when, and by whom",
			takes: []string{"state", "session", "since", "until"}, states: approvalStates, list: approvalList},
		{Name: "commands", What: "commands that were rejected or carried out, the newest first",
			takes: []string{"state", "since", "until"}, states: commandStates, list: commandList},
		{Name: "invocations", What: "tool invocations, the newest first",
			takes: []string{"session", "tool", "since", "until"}, list: invocationList},
		{Name: "models", What: "models on offer and what became of them", fixed: modelsQuery},
		{Name: "search", What: "full-text search over tasks, messages, answers and outputs, the newest first",
			takes: []string{"text", "session", "since", "until"}, need: "text", list: searchList},
		{Name: "session", What: "one session: itself, its messages, inferences and invocations in order",
			takes: []string{"session"}, need: "session"},
		{Name: "sessions", What: "sessions, the newest first",
			takes: []string{"state", "tool", "model", "text", "since", "until"}, states: sessionStates, list: sessionList},
		{Name: "status", What: "how far the database is behind the log"},
		{Name: "tools", What: "tools on offer", fixed: toolsQuery},
		{Name: "workers", What: "processes and what they last said of themselves",
			takes: []string{"state"}, states: workerStates, fixed: workersQuery},
	}
}

// A tool or model is available while a worker that offers it runs, and differs if
// another one that runs offers it with another digest. Two rows of one worker
// share its sequence, so the rows are numbered.
const toolsQuery = `SELECT * FROM (
	SELECT t.tool, t.tool_token, t.worker, w.state = 'RUNNING' AS available, t.description, t.tier, t.capabilities, t.schema,
		t.digest, t.previews, t.idempotent, t.example, t.isolation, t.follow_up_only, t.origin,
		w.state = 'RUNNING' AND ` + differs + ` AS differs, row_number() OVER (ORDER BY t.tool, t.worker) AS seq
	FROM tools t JOIN workers w USING (worker)) WHERE ` + newer

const differs = `EXISTS (SELECT 1 FROM tools x JOIN workers y USING (worker)
	WHERE x.tool = t.tool AND x.digest <> t.digest AND y.state = 'RUNNING')`

const workersQuery = `SELECT * FROM (
	SELECT w.*, (SELECT group_concat(t.tool, ', ') FROM tools t
		WHERE t.worker = w.worker AND w.state = 'RUNNING' AND ` + differs + `) AS differing
	FROM workers w) WHERE (?3 = '' OR state = ?3) AND ` + newer

const modelsQuery = `SELECT * FROM (
	SELECT m.*, coalesce(w.state = 'RUNNING', 0) AND m.offered AS available,
		(SELECT count(*) FROM inferences i WHERE i.model_token = m.model_token AND i.status IN ('REQUESTED', 'STARTED')) AS queue,
		row_number() OVER (ORDER BY m.model, m.worker, m.id) AS number
	FROM models m LEFT JOIN workers w USING (worker)) WHERE number > ?1 ORDER BY number LIMIT ?2`

// Queries answers questions from the read-only side of a database.
type Queries struct {
	db *DB
	// MaxBytes is how large an answer may be; default 512 KiB. A field that
	// alone would not fit is left out, and named in the row's "omitted".
	MaxBytes int
}

// Queries returns the database's answers; it may be used by many goroutines.
func (db *DB) Queries() *Queries { return &Queries{db: db, MaxBytes: 512 << 10} }

// Ask answers q. Errors are for whoever asked.
func (q *Queries) Ask(ctx context.Context, query Query, r Request) (Answer, error) {
	r.State = strings.ToUpper(r.State)
	if err := query.check(r); err != nil {
		return Answer{}, err
	}
	if r.Limit == 0 {
		r.Limit = 100
	}
	switch {
	case query.Name == "session":
		return q.session(ctx, r)
	case query.fixed != "" && len(query.states) > 0:
		return q.page(ctx, r, query.fixed, r.State)
	case query.fixed != "":
		return q.page(ctx, r, query.fixed)
	case query.list == nil:
		return Answer{}, fmt.Errorf("query.%s is not asked of a database", query.Name)
	}
	from, to, err := q.bounds(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	l := query.list(r)
	l.between(from, to)
	if !l.oldest && r.Cursor == 0 {
		r.Cursor = 1 << 62 // beyond all
	}
	return q.page(ctx, r, l.sql(), l.args...)
}

// page runs a query and takes as many of its rows as the limits allow.
func (q *Queries) page(ctx context.Context, r Request, query string, args ...any) (Answer, error) {
	p := page{most: q.MaxBytes, limit: r.Limit, answer: Answer{OK: true, Items: []json.RawMessage{}}}
	args = append([]any{int64(r.Cursor), r.Limit + 1}, args...)
	if err := eachRow(ctx, q.db.read, p.add, query, args...); err != nil && !p.answer.More {
		return Answer{}, err
	}
	return p.answer, nil
}

// session is everything that happened in a session, in the order of the log.
func (q *Queries) session(ctx context.Context, r Request) (Answer, error) {
	var found bool
	err := eachRow(ctx, q.db.read, func([]column, []cell) error { found = true; return nil },
		`SELECT 1 FROM events WHERE session = ? LIMIT 1`, r.Session)
	if err != nil {
		return Answer{}, err
	}
	if !found {
		return Answer{}, fmt.Errorf("no session is called %q", r.Session)
	}
	p := page{most: q.MaxBytes, limit: r.Limit, answer: Answer{OK: true, Items: []json.RawMessage{}}}
	parts, err := q.parts(ctx, r)
	for _, part := range parts {
		if err == nil {
			err = eachRow(ctx, q.db.read, p.add, fmt.Sprintf(`SELECT '%s' AS type, * FROM %[1]ss WHERE rowid = ?`, part.table), part.rowid)
		}
	}
	if err != nil && !p.answer.More {
		return Answer{}, err
	}
	return p.answer, nil
}

// A part is one row of a session's story.
type part struct {
	table string // without its plural s
	rowid int64
}

func (q *Queries) parts(ctx context.Context, r Request) ([]part, error) {
	var parts []part
	err := eachRow(ctx, q.db.read, func(_ []column, row []cell) error {
		parts = append(parts, part{row[0].(string), row[1].(int64)})
		return nil
	}, `SELECT * FROM (
		SELECT 'session' AS type, rowid AS at, seq FROM sessions WHERE session = ?3
		UNION ALL SELECT 'message', seq, seq FROM messages WHERE session = ?3
		UNION ALL SELECT 'inference', rowid, seq FROM inferences WHERE session = ?3
		UNION ALL SELECT 'invocation', rowid, seq FROM invocations WHERE session = ?3) WHERE `+newer,
		int64(r.Cursor), r.Limit+1, r.Session)
	return parts, err
}
