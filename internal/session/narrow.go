package session

import (
	"regexp"
	"slices"
	"strings"

	"correx/pkg/events"
)

// Allowed is the schema of the action that a model may take in an inference.
//
// A model that is guided is held to its plan: to the call that is next in it, with
// the paths that were spoken of, and after the last one to its answer. If a call
// fails, and its failure names what may have been meant, it is held to that.
// Otherwise it may do all that is in the plan and all that changes nothing.
func Allowed(s State, offers []events.ToolOffer, f events.InferenceRequested) events.Raw {
	if !f.Guided || s.Started == nil {
		return ActionSchema(offers, f.Withdrawn, f.FinalOnly)
	}
	goal, since := goalSince(s, f.Through)
	p, t := planOf(goal, offers), triedSince(s, since, f.Through)
	if f.FinalOnly || t.done > 0 && p.enough(t) { // the kernel may not have known the last word
		return answerSchema(p.answer(t, offers))
	}
	if held := p.next(s, offers, f, t); len(held) > 0 {
		return actionSchema(held, 0)
	}
	return actionSchema(offered(p.opened(s, offers, f, t), f.Withdrawn, false), maxGuidedFinal)
}

// answer is the pattern of the answer after the last step of a plan; "": any. If
// the call came to what it comes to in an example, it is that example's answer;
// else it quotes what the tool said, if the nearest example's does.
func (p plan) answer(t tried, offers []events.ToolOffer) string {
	calls := p.calls()
	if len(calls) == 0 || t.done != len(calls) || len(t.failed) > 0 {
		return ""
	}
	best, output := calls[len(calls)-1].best, t.outputs[len(t.outputs)-1]
	for _, s := range append([]sample{best}, samplesOf(offers)...) {
		if answer, ok := s.told(t.last, output); ok && s.sameKind(best) {
			return "^" + regexp.QuoteMeta(answer) + "$"
		}
	}
	if text := copied(output); text != "" && best.quotes() {
		return best.quoting(t.last, text)
	}
	return ""
}

// next is the one tool that a call is due of, held to what is due.
func (p plan) next(s State, offers []events.ToolOffer, f events.InferenceRequested, t tried) []events.ToolOffer {
	calls := p.calls()
	if len(t.failed) > 0 {
		r, ok := t.remedy()
		if !ok {
			return nil
		}
		return only(offers, r.tool, narrowing{operations: []string{r.operation}, paths: r.paths, targets: r.texts, texts: p.said(t)})
	}
	if t.done >= len(calls) {
		return nil
	}
	due := calls[t.done]
	n := narrowing{
		operations: []string{due.best.does().Operation}, paths: p.paths(s, due.part, offers, f, t),
		argv: due.argv(), named: len(namesIn(due.part)) > 0, texts: p.said(t), lines: due.best.endsLine(),
	}
	return only(offers, due.best.tool, n)
}

// said are the texts that the step after the last call may copy: of its part of the
// goal, and what tools put out.
func (p plan) said(t tried) []string {
	calls := p.calls()
	if t.done >= len(calls) {
		return nil
	}
	texts := spansOf(calls[t.done].part)
	if len(texts) == 0 {
		return nil
	}
	for _, o := range t.outputs {
		if text := strings.TrimSpace(o); text != "" && len(text) <= maxCopied {
			texts = append(texts, text)
		}
	}
	return texts
}

// only is one offer, narrowed.
func only(offers []events.ToolOffer, tool string, n narrowing) []events.ToolOffer {
	var out []events.ToolOffer
	for _, o := range offers {
		if o.Name == tool {
			o.Schema = narrowed(o.Schema, n)
			out = append(out, o)
		}
	}
	return out
}

// opened are the tools that may be needed when the plan does not help: those that
// it has, with what it does with them, and those that change nothing. Without a
// plan: all.
func (p plan) opened(s State, offers []events.ToolOffer, f events.InferenceRequested, t tried) []events.ToolOffer {
	paths := p.paths(s, p.goal+t.results, offers, f, t)
	var out []events.ToolOffer
	for _, o := range offers {
		n := narrowing{paths: paths}
		for _, c := range p.calls() {
			if c.best.tool == o.Name {
				n.operations = append(n.operations, c.best.does().Operation)
			}
		}
		switch {
		case o.Tier <= events.T1:
			n.operations = nil // it changes nothing, whatever it does
		case len(n.operations) == 0 && len(p.calls()) > 0:
			continue
		}
		o.Schema = narrowed(o.Schema, n)
		out = append(out, o)
	}
	return out
}

// paths are those that a part may mean: those that it names; else, of what was
// said before it, the latest that were named; else the words that no sample has.
func (p plan) paths(s State, part string, offers []events.ToolOffer, f events.InferenceRequested, t tried) []string {
	if own := namesIn(part); len(own) > 0 {
		return relative(own)
	}
	if goal := pathsIn(p.goal); len(goal) > 0 {
		return relative(goal)
	}
	if refersBack(part) {
		said := []string{s.Started.Task}
		for _, e := range historyOf(s, f) {
			said = append(said, e.told(maxGuidedResult))
		}
		for _, text := range slices.Backward(said) {
			if all := pathsIn(text); len(all) > 0 {
				return relative(all)
			}
		}
	}
	return newIndex(samplesOf(offers)).unknown(part)
}

// endsLine: what is written ends a line, as what is appended does.
func (s sample) endsLine() bool { return strings.HasSuffix(s.does().Content, "\n") }

// argv are the arguments of the samples of a step that runs a program.
func (s step) argv() [][]string {
	var out [][]string
	for _, a := range [][]string{s.best.does().Argv, s.other.does().Argv} {
		if len(a) > 0 {
			out = append(out, a)
		}
	}
	return out
}

// relative leaves out absolute paths where there are others.
func relative(all []string) []string {
	out := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return p[0] == '/' })
	if len(out) == 0 {
		return all
	}
	return out
}
