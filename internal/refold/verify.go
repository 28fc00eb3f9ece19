package refold

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"correx/internal/eventlog"
	"correx/internal/session"
	"correx/pkg/events"
)

// A Finding is the first decision of a session, or of an invocation or inference
// of no session, that is not what the rules give.
type Finding struct {
	Session  events.SessionID `json:"session"`
	ID       string           `json:"id"` // of the aggregate: "main", "t7", "t7-0"
	Seq      uint64           `json:"seq"`
	Fact     events.FactName  `json:"fact"`
	Problem  string           `json:"problem"`
	Expected events.Raw       `json:"expected,omitempty"` // the fact that the rules give; empty: none
	Found    events.Raw       `json:"found,omitempty"`
}

// String is a finding in one line.
func (f Finding) String() string {
	return fmt.Sprintf("%d %s %s %s: %s", f.Seq, f.Session, f.ID, f.Fact, f.Problem)
}

// A Result says what a log was held against, and what came of it.
type Result struct {
	Records   uint64 `json:"records"`
	Sessions  int    `json:"sessions"`
	Decisions int    `json:"decisions"` // of kernels, held against the rules
	Commands  int    `json:"commands"`  // of these, how many carry out a command that was read
	Assumed   int    `json:"assumed"`   // and how many carry out one that is not at hand, told from the fact itself
	GivenUp   int    `json:"given_up"`  // sessions that a kernel failed because the log refused it
	Alarms    int    `json:"alarms"`    // reports of workers that do not hold

	Findings []Finding `json:"findings,omitempty"` // the first of each session, oldest first; at most maxFindings
}

// OK reports whether every decision is what the rules give.
func (r Result) OK() bool { return len(r.Findings) == 0 }

// maxFindings bounds what a log of other rules can fill.
const maxFindings = 100

// Verify folds the first through records of a log, and checks each decision in
// them. Progress may be nil.
func Verify(ctx context.Context, src Source, through uint64, progress func(done uint64)) (Result, error) {
	v := verifier{ctx: ctx, src: src, sessions: eventlog.Sessions(ctx, src), folds: map[session.Key]*fold{}, cited: map[events.CommandID]uint64{}, seen: map[events.SessionID]bool{}}
	err := src.Each(ctx, events.PrefixFact+".>", 1, through, func(r events.Record) error {
		if progress != nil && r.Seq%1000 == 0 {
			progress(r.Seq)
		}
		return v.record(r)
	})
	if err != nil {
		return v.out, fmt.Errorf("verify: %w", err)
	}
	return v.out, nil
}

type verifier struct {
	ctx      context.Context
	src      Source
	sessions session.Reader
	world    worlds
	folds    map[session.Key]*fold
	cited    map[events.CommandID]uint64 // the fact that carries a command out, or rejects it
	seen     map[events.SessionID]bool
	out      Result
}

// record checks one record, and folds it.
func (v *verifier) record(r events.Record) error {
	v.out.Records++
	if s := r.Aggregate.Session; s != "" && s != events.System && !v.seen[s] {
		v.seen[s] = true
		v.out.Sessions++
	}
	id, ok := session.KeyOfRecord(r)
	if !ok {
		if problem := v.aside(r); problem != "" {
			v.find(nil, finding(r, problem))
		}
		v.world.fold(r)
		return nil
	}
	f, err := v.fold(id, r)
	if err != nil {
		return err
	}
	next, err := session.Continue(f.state, r, v.sessions)
	if err != nil {
		return err
	}
	holds := len(next.Alarms) == len(f.state.Alarms) && r.Err == nil
	switch found, err := v.check(f, r, holds); {
	case err != nil:
		return err
	case found != nil:
		v.find(f, *found)
	}
	f.push(next)
	if f.rests() {
		delete(v.folds, id)
	}
	v.world.fold(r)
	return nil
}

// find keeps the first finding of each fold; what follows rests on it.
func (v *verifier) find(f *fold, found Finding) {
	if f != nil && f.found {
		return
	}
	if f != nil {
		f.found = true
	}
	if len(v.out.Findings) < maxFindings {
		v.out.Findings = append(v.out.Findings, found)
	}
}

// aside checks the decisions that no state holds: wishes for models, and
// rejections of commands.
func (v *verifier) aside(r events.Record) string {
	d, ok := decisionOf(r)
	if !ok {
		return ""
	}
	v.out.Decisions++
	if d.DecidedAt >= r.Seq {
		return fmt.Sprintf("was decided at %d, which came later", d.DecidedAt)
	}
	if d.Command == "" {
		return "names no command"
	}
	if _, rejects := r.Fact.(events.CommandRejected); rejects {
		return v.cite(d.Command, r.Seq)
	}
	return "" // one command loads a model on each of its workers
}

// cite says which other fact carries a command out already.
func (v *verifier) cite(c events.CommandID, seq uint64) string {
	if other, ok := v.cited[c]; ok {
		return fmt.Sprintf("command %s was answered by %d already", c, other)
	}
	v.cited[c] = seq
	return ""
}

// fold returns what is folded of a key before r. What rested and is referred to
// again is read again.
func (v *verifier) fold(id session.Key, r events.Record) (*fold, error) {
	if f := v.folds[id]; f != nil {
		return f, nil
	}
	f := &fold{id: id}
	f.push(session.State{ID: id.Session})
	if id.Kind != "" && r.Fact != nil && r.Fact.FactName().Token() != "requested" {
		s, err := v.stateAt(id, r.Seq-1)
		if err != nil {
			return nil, err
		}
		f.push(s)
	}
	v.folds[id] = f
	return f, nil
}

// stateAt reads the state of a key as it was at seq.
func (v *verifier) stateAt(id session.Key, seq uint64) (session.State, error) {
	if seq == 0 {
		return session.State{ID: id.Session}, nil
	}
	if id.Kind == "" {
		return session.Read(v.sessions, id.Session, seq)
	}
	var all []events.Record
	for _, filter := range id.Filters() {
		err := v.src.Each(v.ctx, filter, 1, seq, func(r events.Record) error {
			if of, ok := session.KeyOfRecord(r); ok && of == id {
				all = append(all, r)
			}
			return nil
		})
		if err != nil {
			return session.State{}, err
		}
	}
	slices.SortFunc(all, func(a, b events.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	s := session.State{ID: id.Session}
	for _, r := range all {
		s = session.Evolve(s, r)
	}
	return s, nil
}
