package refold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"correx/internal/session"
	"correx/pkg/events"
)

// check holds one record against the rules: nil if it is no decision of a kernel,
// or the right one.
func (v *verifier) check(f *fold, r events.Record, holds bool) (*Finding, error) {
	d, decided := decisionOf(r)
	if !decided {
		if !holds {
			return v.unheld(r), nil
		}
		return nil, nil
	}
	v.out.Decisions++
	wrong := func(format string, a ...any) (*Finding, error) {
		found := finding(r, fmt.Sprintf(format, a...))
		return &found, nil
	}
	switch {
	case !holds:
		return wrong("may not stand here")
	case d.DecidedAt >= r.Seq || d.WorldAt >= r.Seq:
		return wrong("was decided at %d, in the world at %d, of which one came later", d.DecidedAt, d.WorldAt)
	}
	if failed, ok := r.Fact.(events.SessionFailed); ok && failed.Code == events.FailConflict && d.WorldAt == 0 {
		v.out.GivenUp++ // of the log's refusals nothing stands on it
		return nil, nil
	}
	s, w, err := v.then(f, d)
	if err != nil {
		return nil, err
	}
	if s.Seq != d.DecidedAt || w.Seq != d.WorldAt {
		return wrong("names as read %d and %d, which are no records of its session and of the world", d.DecidedAt, d.WorldAt)
	}
	want, why, err := v.answer(s, w, r, d)
	if err != nil {
		return nil, err
	}
	if want == nil {
		return wrong("%s", why)
	}
	return compare(*want, f.state, r), nil
}

// unheld counts a worker's report that does not hold. Of what only a kernel may
// write, it is a finding.
func (v *verifier) unheld(r events.Record) *Finding {
	_, name, _, err := events.ParseSubject(r.Subject)
	if err != nil || r.Err == nil || !kernels(name) {
		v.out.Alarms++
		return nil
	}
	found := finding(r, "does not hold: "+r.Err.Error())
	return &found
}

// kernels reports whether only a kernel writes facts of this name.
func kernels(n events.FactName) bool {
	switch n {
	case "tool.rejected", "inference.failed": // workers do, too
		return false
	case "tool.requested", "tool.approval_requested", "tool.approved", "tool.denied", "tool.expired", "tool.cancel_requested",
		"inference.requested", "command.rejected", "model.load_requested", "model.unload_requested":
		return true
	}
	return n.Kind() == events.KindSession
}

// decisionOf returns the decision that a record is, if it is one of a kernel.
func decisionOf(r events.Record) (events.Decision, bool) {
	f, ok := r.Fact.(interface{ Decided() events.Decision })
	if !ok {
		return events.Decision{}, false
	}
	d := f.Decided()
	return d, kernels(r.Fact.FactName()) || !d.Now.IsZero()
}

// then returns the state and the world that a decision was made on.
func (v *verifier) then(f *fold, d events.Decision) (s session.State, w session.World, err error) {
	s, ok := f.at(d.DecidedAt)
	if !ok {
		if s, err = v.stateAt(f.id, d.DecidedAt); err != nil {
			return s, w, err
		}
	}
	if w, ok = v.world.at(d.WorldAt); ok || d.WorldAt == 0 {
		return s, w, nil
	}
	w = session.World{}
	err = v.src.Each(v.ctx, events.PrefixFact+".>", 1, d.WorldAt, func(r events.Record) error {
		w = session.EvolveWorld(w, r)
		return nil
	})
	return s, w, err
}

// answer returns what the rules say, or why they say nothing of the kind.
func (v *verifier) answer(s session.State, w session.World, r events.Record, d events.Decision) (*session.Decision, string, error) {
	if d.Command == "" {
		for _, want := range session.React(s, w, d.Now).Decisions {
			if events.AggregateOf(want.Fact) == r.Aggregate && want.Fact.FactName() == r.Fact.FactName() {
				return &want, "", nil
			}
		}
		return nil, "nothing called for it", nil
	}
	if problem := v.cite(d.Command, r.Seq); problem != "" {
		return nil, problem, nil
	}
	wish, ok, err := v.src.Command(v.ctx, d.Command)
	switch {
	case err != nil:
		return nil, "", err
	case ok:
		v.out.Commands++
	default:
		v.out.Assumed++
		wish = assumed(r, d)
	}
	if len(wish.Faults) > 0 {
		return nil, fmt.Sprintf("command %s has faults: %s", d.Command, strings.Join(wish.Faults, "; ")), nil
	}
	before := session.Others{Read: v.sessions, Last: func() (uint64, error) { return r.Seq - 1, nil }}
	a, err := session.Handle(s, w, wish, d.Now, before)
	switch {
	case err != nil:
		return nil, "", err
	case a.Decision == nil && len(a.Reject) > 0:
		return nil, fmt.Sprintf("command %s was to be rejected: %s", d.Command, strings.Join(a.Reject, "; ")), nil
	case a.Decision == nil:
		return nil, fmt.Sprintf("command %s had to wait for %s", d.Command, a.Why), nil
	}
	return a.Decision, "", nil
}

// compare holds a record against the decision that it should be; before is the
// state that it was appended to.
func compare(want session.Decision, before session.State, r events.Record) *Finding {
	found := finding(r, "")
	expected, err1 := json.Marshal(unsigned(want.Fact))
	got, err2 := json.Marshal(unsigned(r.Fact))
	cause := events.HeaderText(r.Header.Get(events.HeaderCausation))
	switch {
	case err1 != nil || err2 != nil:
		found.Problem = fmt.Sprintf("cannot be compared: %v, %v", err1, err2)
	case !bytes.Equal(expected, got):
		found.Problem = "is another than the rules give: " + difference(expected, got)
		found.Expected, found.Found = expected, got
	case r.Header.Get(events.HeaderID) != events.FactID(r.Aggregate, want.After):
		found.Problem = fmt.Sprintf("is called %q, and should be %q", r.Header.Get(events.HeaderID), events.FactID(r.Aggregate, want.After))
	case want.After != last(before, r.Aggregate):
		found.Problem = fmt.Sprintf("was to follow %d, and follows %d", want.After, last(before, r.Aggregate))
	case cause != want.Cause:
		found.Problem = fmt.Sprintf("names as its cause %q, and should %q", cause, want.Cause)
	default:
		return nil
	}
	return &found
}

// unsigned is a fact without what the kernel's key adds to it.
func unsigned(f events.Fact) events.Fact {
	if g, ok := f.(events.ApprovalGranted); ok {
		g.Key, g.Signature = "", ""
		return g
	}
	return f
}

// difference names the first field of two objects that is not the same.
func difference(expected, got []byte) string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(expected, &a) != nil || json.Unmarshal(got, &b) != nil {
		return "not the same kind of value"
	}
	for _, name := range fieldNames(a, b) {
		if !bytes.Equal(a[name], b[name]) {
			return fmt.Sprintf("%s is %s, expected %s", name, short(b[name]), short(a[name]))
		}
	}
	return "the same fields in another order"
}

func finding(r events.Record, problem string) Finding {
	_, name, _, _ := events.ParseSubject(r.Subject) // a record without a name is called nothing
	return Finding{Session: r.Aggregate.Session, ID: r.Aggregate.ID, Seq: r.Seq, Fact: name, Problem: problem}
}
