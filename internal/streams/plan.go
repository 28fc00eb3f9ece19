package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// A Verdict says what becomes of a change, or of an object.
type Verdict string

const (
	Create    Verdict = "create"
	Unchanged Verdict = "unchanged"
	Update    Verdict = "update"
	Refused   Verdict = "refused" // the server would not do it
	Lossy     Verdict = "lossy"   // it would lose messages; applied by force only
)

// A Change is one field that differs, by the server's name.
type Change struct {
	Field   string  `json:"field"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Verdict Verdict `json:"verdict"`          // update, refused or lossy
	Advice  string  `json:"advice,omitempty"` // what it would do, and what to do instead
}

// A Step is what has to be done about one object.
type Step struct {
	Object  string   `json:"object"` // "stream EVENTS", "bucket ARTIFACTS", "consumer COMMANDS/kernel-commands"
	Verdict Verdict  `json:"verdict"`
	Changes []Change `json:"changes,omitempty"`

	target target
	seen   fields // the configuration that was compared with; nil: none
}

// A Plan is what has to be done, in order.
type Plan struct {
	Steps []Step `json:"steps"`
}

// A target is an object that can be read from a server and written to it.
type target interface {
	title() string
	want() (fields, error)
	have(ctx context.Context, js jetstream.JetStream) (fields, error) // nil: not there
	create(ctx context.Context, js jetstream.JetStream) error
	update(ctx context.Context, js jetstream.JetStream) error
	rules() []rule
}

// MakePlan compares the spec with a server and changes nothing. Replicas is for
// streams whose number of replicas the spec leaves open.
func MakePlan(ctx context.Context, js jetstream.JetStream, s Spec, replicas int) (Plan, error) {
	var p Plan
	for _, t := range s.targets(replicas) {
		step, err := stepFor(ctx, js, t)
		if err != nil {
			return Plan{}, fmt.Errorf("plan %s: %w", t.title(), err)
		}
		p.Steps = append(p.Steps, step)
	}
	return p, nil
}

func (s Spec) targets(replicas int) []target {
	var all []target
	for _, d := range s.streams(replicas) {
		all = append(all, d)
	}
	for _, c := range s.Consumers {
		all = append(all, c)
	}
	return all
}

func stepFor(ctx context.Context, js jetstream.JetStream, t target) (Step, error) {
	step := Step{Object: t.title(), target: t}
	want, err := t.want()
	if err != nil {
		return step, err
	}
	if step.seen, err = t.have(ctx, js); err != nil {
		return step, err
	}
	if step.seen == nil {
		step.Verdict = Create
		return step, nil
	}
	step.Changes = compare(step.seen, want, t.rules())
	step.Verdict = worst(step.Changes)
	return step, nil
}

func worst(changes []Change) Verdict {
	v := Unchanged
	for _, c := range changes {
		switch {
		case c.Verdict == Refused:
			return Refused
		case c.Verdict == Lossy, v == Unchanged:
			v = c.Verdict
		}
	}
	return v
}

// Unchanged says that there is nothing to do.
func (p Plan) Unchanged() bool {
	for _, s := range p.Steps {
		if s.Verdict != Unchanged {
			return false
		}
	}
	return true
}

// Blocked returns why the plan cannot be applied: each change that the server
// would refuse and, unless forced, each that would lose messages.
func (p Plan) Blocked(force bool) error {
	var errs []error
	for _, s := range p.Steps {
		for _, c := range s.Changes {
			if c.Verdict == Refused || c.Verdict == Lossy && !force {
				errs = append(errs, fmt.Errorf("%s: %s", s.Object, c))
			}
		}
	}
	return errors.Join(errs...)
}

func (c Change) String() string {
	s := fmt.Sprintf("%s: %s → %s", c.Field, c.From, c.To)
	if c.Verdict != Update {
		s += fmt.Sprintf(" (%s: %s)", c.Verdict, c.Advice)
	}
	return s
}

// String is the plan for people, a line for each object and change.
func (p Plan) String() string {
	var b strings.Builder
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%-9s %s\n", s.Verdict, s.Object)
		for _, c := range s.Changes {
			fmt.Fprintf(&b, "          %s\n", c)
		}
	}
	return b.String()
}
