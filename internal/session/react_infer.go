package session

import (
	"fmt"

	"correx/pkg/events"
)

func (r *reactor) model() (events.ModelID, events.ModelCapability) {
	if r.s.Started.Model == "" && r.s.Started.Capability == "" {
		return r.w.Settings.Model, ""
	}
	return r.s.Started.Model, r.s.Started.Capability
}

func (r *reactor) modelName() string {
	name, c := r.model()
	switch {
	case name != "":
		return fmt.Sprintf("the model %q", name)
	case c != "":
		return "a model for " + string(c)
	}
	return "any model"
}

// ask requests the inference of a turn.
func (r *reactor) ask(stage events.StageID, lim events.Limits, rep repetition) {
	f := events.InferenceRequested{
		Stage: stage, Generation: r.s.Started.Generation,
		FinalOnly: lim.Turns > 0 && r.s.Active.Turns >= lim.Turns,
	}
	for _, o := range r.offers() {
		f.Tools = append(f.Tools, events.ToolRef{Name: o.Name, Digest: o.Digest})
	}
	f.Withdrawn = rep.shut
	f.FinalOnly = f.FinalOnly || r.enough(rep)
	r.infer(f)
}

// enough reports whether a model that is guided has done what it can: what its
// plan says, or the same again.
func (r *reactor) enough(rep repetition) bool {
	m, ok := r.w.Model(r.model())
	if !ok || !m.What.Small {
		return false
	}
	goal, since := goalSince(r.s, r.s.Seq)
	return len(rep.shut) > 0 || planOf(goal, r.offers()).enough(triedSince(r.s, since, r.s.Seq))
}

// offers are the tools that the session may use and the world has.
func (r *reactor) offers() []events.ToolOffer {
	wanted := map[string]bool{}
	for _, t := range r.toolsWanted() {
		wanted[t] = true
	}
	var out []events.ToolOffer
	for _, o := range r.w.Tools() {
		if !o.What.FollowUpOnly && (len(wanted) == 0 || wanted[o.What.Name]) {
			out = append(out, o.What)
		}
	}
	return out
}

// infer requests an inference, numbered within its session.
func (r *reactor) infer(f events.InferenceRequested) {
	id, after := r.nextInference()
	m, ok := r.w.Model(r.model())
	if !ok {
		r.ready()
		return
	}
	f.Ref, f.Decision = events.Ref{Session: r.s.ID, ID: string(id)}, r.decision()
	f.Model, f.ModelToken, f.Guided = m.What.Name, m.What.Token, m.What.Small
	f.Through = max(f.DecidedAt, f.WorldAt)
	f.Deadline = r.now.Add(r.w.Settings.OfferWait)
	r.decide(f, after)
}

// nextInference returns the first number that nothing holds, counted from how
// many there are, and the sequence to append behind.
func (r *reactor) nextInference() (events.InferenceID, uint64) {
	n := 1
	for _, i := range r.s.Inferences {
		if i.status != "" {
			n++
		}
	}
	for ; ; n++ {
		id := events.InferenceID(fmt.Sprintf("t%d", n))
		if i, _ := r.s.Inference(id); i.status == "" {
			return id, i.LastSeq
		}
	}
}
