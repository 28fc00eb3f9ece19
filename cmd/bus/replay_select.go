package main

import (
	"slices"
	"time"

	"correx/internal/cli"
	"correx/pkg/events"
)

// A selection is the facts that a replay is of.
type selection struct {
	subject     string // filter for NATS
	all         bool   // which selects every fact
	facts       []events.FactName
	from, until *point
	through     uint64
}

func (r replay) selection() (selection, error) {
	s := selection{through: r.through, all: r.session == "" && r.kind == ""}
	var err error
	if err = r.check(); err != nil {
		return s, err
	}
	if s.subject, err = r.subject(); err != nil {
		return s, err
	}
	for _, name := range r.facts {
		if _, ok := events.LookupFact(events.FactName(name)); !ok {
			return s, cli.Usage("--fact %q is none; write one such as tool.completed, bus schema lists them", name)
		}
		s.facts = append(s.facts, events.FactName(name))
	}
	now := time.Now()
	for _, p := range []struct {
		text string
		to   **point
	}{{r.from, &s.from}, {r.until, &s.until}} {
		if p.text == "" {
			continue
		}
		at, err := parsePoint(p.text, now)
		if err != nil {
			return s, err
		}
		*p.to = &at
	}
	if s.from != nil && s.until != nil && s.from.after(*s.until) {
		return s, cli.Usage("--from %s lies behind --until %s", s.from.text, s.until.text)
	}
	return s, nil
}

// first is the sequence to begin reading at.
func (s selection) first() uint64 {
	if s.from == nil {
		return 1
	}
	return max(s.from.seq, 1)
}

// last is the sequence to end reading at, of a log that ends at end.
func (s selection) last(end uint64) uint64 {
	switch {
	case s.through > 0:
		return min(s.through, end)
	case s.until != nil && s.until.seq > 0:
		return min(s.until.seq, end)
	}
	return end
}

// whole reports whether all records from the first to some last one are selected.
func (s selection) whole() bool {
	return s.all && len(s.facts) == 0 && s.first() == 1 && !isTime(s.from) && !isTime(s.until)
}

func isTime(p *point) bool { return p != nil && p.seq == 0 }

// only calls fn with what is selected by time and name. Times are held against each
// record, for a clock that was set back leaves them out of order.
func (s selection) only(fn func(events.Record) error) func(events.Record) error {
	return func(r events.Record) error {
		if isTime(s.from) && r.Time.Before(s.from.time) || isTime(s.until) && r.Time.After(s.until.time) {
			return nil
		}
		if len(s.facts) > 0 {
			_, name, _, err := events.ParseSubject(r.Subject)
			if err != nil || !slices.Contains(s.facts, name) {
				return nil
			}
		}
		return fn(r)
	}
}
