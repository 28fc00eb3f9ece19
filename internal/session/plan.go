package session

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"correx/pkg/events"
)

// A plan is what the goal of a guided model seems to need: a step for each part
// of it that a sample resembles. No steps at all: nothing here resembles it.
type plan struct {
	goal  string
	steps []step
	// open: there are tools without a sample, so that one of them may be meant.
	open bool
}

// A step is a part of a goal, with the sample that is most like it and another of
// its kind, so that the two show what changes from task to task.
type step struct {
	part        string
	best, other sample
}

// planOf holds a goal against the samples of the tools on offer.
func planOf(goal string, offers []events.ToolOffer) plan {
	x := newIndex(samplesOf(offers))
	p := plan{goal: goal, open: slices.ContainsFunc(offers, func(o events.ToolOffer) bool { return o.Example == nil && len(o.Examples) == 0 })}
	all := parts(goal, x.verbs)
	for k, part := range all {
		like := func(sample) bool { return true }
		_, known := x.verbs[verbOf(part)]
		switch {
		case known || asks[verbOf(part)]:
		case len(p.steps) > 0: // "write a to one.txt and b to two.txt"
			like = p.steps[len(p.steps)-1].best.sameKind
		case k+1 < len(all): // it says what the rest is about
			continue
		}
		x.back = len(p.steps) > 0 || known
		if s, ok := x.step(part, p, like); ok {
			p.steps = append(p.steps, s)
		}
	}
	return p
}

// step is the one that a part asks for, with samples that the plan does not have.
func (x index) step(part string, p plan, like func(sample) bool) (step, bool) {
	var had []sample
	for _, s := range p.steps {
		had = append(had, s.best, s.other)
	}
	best, ok := x.best(part, had, like)
	if !ok { // rather the same again than none
		if best, ok = x.best(part, nil, like); !ok {
			return step{}, false
		}
	}
	other, ok := x.best(part, append(had, best), func(t sample) bool {
		return t.sameKind(best) && (best.tool == "" || !bytes.Equal(t.Parameters, best.Parameters))
	})
	if !ok {
		other = best
	}
	return step{part, best, other}, true
}

// calls are the steps that a tool does.
func (p plan) calls() []step {
	return slices.DeleteFunc(slices.Clone(p.steps), func(s step) bool { return s.best.tool == "" })
}

// chains are the samples to show, the best last, for what is nearest to the task
// counts most.
func (p plan) chains() (other, best []sample) {
	for _, s := range p.steps {
		other, best = append(other, s.other), append(best, s.best)
	}
	switch {
	case len(p.steps) > 0:
	case words(p.goal)[aQuestion] > 0:
		return knownSamples[:1], knownSamples[1:2]
	case !p.open: // nothing here is like it, so most likely nothing here can do it
		return cannotSamples[:1], cannotSamples[1:2]
	}
	return other, best
}

// sameKind: the same tool does the same with the same program.
func (s sample) sameKind(t sample) bool {
	if s.tool == "" || t.tool == "" {
		return s.tool == t.tool && strings.HasPrefix(s.Answer, cannot) == strings.HasPrefix(t.Answer, cannot)
	}
	a, b := s.does(), t.does()
	return s.tool == t.tool && a.Operation == b.Operation && a.program() == b.program()
}

// A deed is what parameters say is to be done, as far as tools agree on it.
type deed struct {
	Operation string   `json:"operation"`
	Path      string   `json:"path"`
	Content   string   `json:"content"`
	Target    string   `json:"target"`
	Argv      []string `json:"argv"`
}

func (s sample) does() deed { return deedOf(s.Parameters) }

func deedOf(parameters events.Raw) deed {
	var d deed
	_ = json.Unmarshal(parameters, &d) // what is called otherwise is not there
	return d
}

func (d deed) program() string {
	if len(d.Argv) == 0 {
		return ""
	}
	return d.Argv[0]
}

// maxParts is how many parts of a goal are looked at.
const maxParts = 4

var (
	seams  = regexp.MustCompile(`[.!?;,]?\s+(?:and then|then|and)\s+|[.!?;,]\s+|\n+`)
	polite = regexp.MustCompile(`(?i)^(?:(?:please|now|then|first|finally|also|next|kindly|just|(?:can|could|would|will) you|i (?:want|need|would like) you to)[, ]+)+`)
)

// parts takes a goal apart where it goes on to something else: at a verb that is
// known, or at the next file for the same.
func parts(goal string, verbs map[string]bool) []string {
	var out []string
	from := 0
	for _, at := range append(seams.FindAllStringIndex(goal, -1), []int{len(goal), len(goal)}) {
		if from >= at[0] {
			continue
		}
		rest := goal[at[1]:]
		next := rest
		if m := seams.FindStringIndex(rest); m != nil {
			next = rest[:m[0]]
		}
		if this := goal[from:at[0]]; rest == "" || goesOn(this, next, rest, verbs) {
			out = append(out, strings.TrimSpace(this))
			from = at[1]
		}
	}
	return out[:min(len(out), maxParts)]
}

// goesOn reports whether next is something else to do, and no more of this, for
// which a file would be missing.
func goesOn(this, next, rest string, verbs map[string]bool) bool {
	named := len(pathsIn(this)) > 0
	if verbs[verbOf(this)] && !named && !refersBack(this) && len(pathsIn(rest)) > 0 {
		return false
	}
	_, known := verbs[verbOf(next)]
	return known && !telling[verbOf(next)] || named && len(pathsIn(next)) > 0
}

// verbOf is the word that a part begins with, apart from courtesy.
func verbOf(part string) string {
	return stem(strings.Trim(first(polite.ReplaceAllString(part, "")), ".,:;!?"))
}
