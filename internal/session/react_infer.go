package session

import (
	"fmt"

	"correx/pkg/events"
)

// want is the model that the session names, or the capability, or what the
// settings say.
func (r *reactor) want() Want {
	q := r.w.wanted(r.s.Started.Model, r.s.Started.Capability)
	for k := len(r.s.Inferences) - 1; k >= 0; k-- {
		if i := r.s.Inferences[k]; i.Requested != nil {
			q.Last = i.Requested.Model
			break
		}
	}
	q.Avoid = r.untaken()
	return q
}

// wanted fills in the settings' model where nothing is named.
func (w World) wanted(name events.ModelID, c events.ModelCapability) Want {
	if name == "" && c == "" && w.Settings.Model != "" {
		return Want{Model: w.Settings.Model, Default: true}
	}
	return Want{Model: name, Capability: c}
}

// untaken are the models that no worker took an inference of, since the last one
// that did not fail.
func (r *reactor) untaken() (all []events.ModelID) {
	for k := len(r.s.Inferences) - 1; k >= r.s.Active.Inferences; k-- {
		switch i := r.s.Inferences[k]; {
		case i.status == "":
		case i.Failure == nil:
			return all
		case i.Failure.Code == events.FailNobody && i.Requested != nil:
			all = append(all, i.Requested.Model)
		}
	}
	return all
}

// String says what is wanted, for people.
func (q Want) String() string {
	switch {
	case q.Model != "":
		return fmt.Sprintf("the model %q", q.Model)
	case q.Capability != "":
		return "a model for " + string(q.Capability)
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
	m, ok := r.w.Route(r.want())
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
	m, ok := r.w.Route(r.want())
	if !ok {
		r.ready()
		return
	}
	f.Ref, f.Decision = events.Ref{Session: r.s.ID, ID: string(id)}, r.decision()
	f.Model, f.ModelToken, f.Guided = m.What.Name, m.What.Token, m.What.Small
	f.Routing = &m.Routing
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
