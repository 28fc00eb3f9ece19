package events

import (
	"fmt"
	"strings"
)

// Subject prefixes (design: subjects).
const (
	PrefixFact    = "evt"
	PrefixCommand = "cmd"
	PrefixLive    = "live"
	PrefixAPI     = "api"
	PrefixQuery   = "query"
	PrefixWorker  = "wrk"
)

// An Aggregate is all facts about one thing: a session, an inference, a tool
// invocation, a model on a worker, a worker, a command. Aggregates are disjoint.
type Aggregate struct {
	Session SessionID
	Kind    Kind
	ID      string
}

// AggregateOf returns the aggregate that f belongs to.
func AggregateOf(f Fact) Aggregate {
	r := f.Of()
	return Aggregate{r.Session, f.FactName().Kind(), r.ID}
}

// Ref returns what the facts of a say of themselves.
func (a Aggregate) Ref() Ref { return Ref{a.Session, a.ID} }

// Filter returns the subject filter of a. It is the only such filter that may
// be used: on a replicated stream a conditional append is safe only against
// appends with the byte-identical filter.
func (a Aggregate) Filter() string {
	return PrefixFact + "." + string(a.Session) + "." + string(a.Kind) + "." + a.ID + ".>"
}

func (a Aggregate) String() string {
	return string(a.Session) + "." + string(a.Kind) + "." + a.ID
}

// Check reports why a cannot stand in a subject.
func (a Aggregate) Check() error {
	for _, t := range [...]struct{ what, token string }{
		{"session", string(a.Session)}, {"kind", string(a.Kind)}, {"id", a.ID},
	} {
		if err := CheckToken(t.token); err != nil {
			return fmt.Errorf("%s %w", t.what, err)
		}
	}
	return nil
}

// SessionFilter returns the filter of one session's whole story.
func SessionFilter(s SessionID) string { return PrefixFact + "." + string(s) + ".>" }

// KindFilter returns the filter of all aggregates of one kind in one session;
// "*" for the session means all of them.
func KindFilter(s SessionID, k Kind) string {
	return PrefixFact + "." + string(s) + "." + string(k) + ".>"
}

// RoutedFilter returns the filter of a routed fact of every session, such as
// evt.*.tool.*.approved.<tool>.
func RoutedFilter(n FactName, route string) string {
	return PrefixFact + ".*." + string(n.Kind()) + ".*." + n.Token() + "." + route
}

// SubjectOf returns the subject that f is published on, or why there is none.
func SubjectOf(f Fact) (string, error) {
	a := AggregateOf(f)
	if err := a.Check(); err != nil {
		return "", fmt.Errorf("subject of %s: %w", f.FactName(), err)
	}
	s := strings.TrimSuffix(a.Filter(), ">") + f.FactName().Token()
	if r, ok := f.(Routed); ok {
		if err := CheckToken(r.Route()); err != nil {
			return "", fmt.Errorf("subject of %s: route %w", f.FactName(), err)
		}
		s += "." + r.Route()
	}
	if len(s) > MaxSubject {
		return "", fmt.Errorf("subject of %s: %d bytes long; at most %d are allowed", f.FactName(), len(s), MaxSubject)
	}
	return s, nil
}

// ParseSubject takes a fact's subject apart. Route is empty for facts that have
// none.
func ParseSubject(s string) (a Aggregate, n FactName, route string, err error) {
	if len(s) > MaxSubject {
		return a, "", "", fmt.Errorf("subject is %d bytes long; at most %d are allowed", len(s), MaxSubject)
	}
	t := strings.Split(s, ".")
	if len(t) < 5 || len(t) > 6 || t[0] != PrefixFact {
		return a, "", "", fmt.Errorf("subject %q is not evt.<session>.<kind>.<id>.<fact>[.<route>]", s)
	}
	for _, tok := range t {
		if err := CheckToken(tok); err != nil {
			return a, "", "", fmt.Errorf("subject %q: token %w", s, err)
		}
	}
	a = Aggregate{SessionID(t[1]), Kind(t[2]), t[3]}
	if len(t) == 6 {
		route = t[5]
	}
	return a, FactName(t[2] + "." + t[4]), route, nil
}

// LiveSubject is where the token deltas of an inference go; they are never stored.
func LiveSubject(s SessionID, i InferenceID) string {
	return PrefixLive + "." + string(s) + "." + string(i)
}

// RunningSubject asks a worker whether it holds an invocation or inference.
func RunningSubject(w WorkerID) string { return PrefixWorker + "." + string(w) + ".running" }

// ToolsSubject asks a tool-worker for its offers.
func ToolsSubject(w WorkerID) string { return PrefixWorker + "." + string(w) + ".tools" }

// ModelsSubject asks a model-worker for its models, and what goes on with each.
func ModelsSubject(w WorkerID) string { return PrefixWorker + "." + string(w) + ".models" }

// DrainSubject asks a worker to finish what it has and stop.
func DrainSubject(w WorkerID) string { return PrefixWorker + "." + string(w) + ".drain" }
