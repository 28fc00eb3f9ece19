package session

import (
	"cmp"
	"slices"

	"correx/pkg/events"
)

// A Want is what an inference needs of a model: a name, else a capability, else
// whatever is best at General.
type Want struct {
	Model      events.ModelID
	Capability events.ModelCapability
	Default    bool             // Model is that of the settings, and nobody named it
	Last       events.ModelID   // the session's latest inference was by it
	Avoid      []events.ModelID // nobody took what was asked of them: only if no other is left
}

// A Choice is a model, and why it was chosen.
type Choice struct {
	Offer[events.ModelOffer]
	Routing events.Routing
}

// Route chooses a model among those on offer: the one that is named, else the
// first by this order.
//
//  1. somebody took what was asked of it last
//  2. score at the capability
//  3. state: loaded, being loaded, out of memory, broken
//  4. open inferences for each slot, over all of its workers
//  5. it answered this session last
//  6. its name
//
// It is a function of the world alone, so that every kernel that has read as far
// chooses the same. The routing names the first of these that set the choice
// apart from all others. False: nobody offers what is wanted.
func (w World) Route(q Want) (Choice, bool) {
	all := w.models()
	if q.Model != "" {
		o, ok := all[string(q.Model)]
		rule := events.RuleName
		if q.Default {
			rule = events.RuleDefault
		}
		return Choice{o, events.Routing{Rule: rule, State: w.State(o), Queue: w.Queue[o.What.Token]}}, ok
	}
	if len(all) == 0 {
		return Choice{}, false
	}
	c := cmp.Or(q.Capability, events.General)
	var field []candidate
	for _, o := range ordered(all) {
		field = append(field, w.candidate(o, c, q))
	}
	slices.SortFunc(field, func(a, b candidate) int { d, _ := a.compare(b); return d })
	best := field[0]
	rule := events.RuleOnly
	if len(field) > 1 {
		_, rule = best.compare(field[1])
	}
	return Choice{best.Offer, events.Routing{
		Rule: rule, Capability: c, Score: best.score, Among: len(field), State: best.state, Queue: best.open,
	}}, true
}

func (w World) offersModel(q Want) bool { _, ok := w.Route(q); return ok }

// A candidate is a model with all that is compared.
type candidate struct {
	Offer[events.ModelOffer]
	avoid bool
	score float64
	state events.ModelState
	open  int // inferences that have not ended
	slots int
	last  bool
}

func (w World) candidate(o Offer[events.ModelOffer], c events.ModelCapability, q Want) candidate {
	x := candidate{
		Offer: o, avoid: slices.Contains(q.Avoid, o.What.Name), state: w.State(o),
		open: w.Queue[o.What.Token], slots: w.slots(o), last: o.What.Name == q.Last,
	}
	for _, k := range o.What.Capabilities {
		if k.Capability == c {
			x.score = k.Score
		}
	}
	return x
}

// compare is negative if a goes before b, and names the rule that says so. It is
// a total order, for no two candidates have one name.
func (a candidate) compare(b candidate) (int, events.RoutingRule) {
	if d := before(b.avoid, a.avoid); d != 0 {
		return d, events.RuleTaken
	}
	if d := cmp.Compare(b.score, a.score); d != 0 {
		return d, events.RuleScore
	}
	if d := cmp.Compare(rank(a.state), rank(b.state)); d != 0 {
		return d, events.RuleState
	}
	if d := cmp.Compare(a.open*b.slots, b.open*a.slots); d != 0 {
		return d, events.RuleQueue
	}
	if d := before(a.last, b.last); d != 0 {
		return d, events.RuleLast
	}
	return cmp.Compare(a.What.Name, b.What.Name), events.RuleOrder
}

// before puts what is so before what is not.
func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// rank orders states by how soon a model answers.
func rank(s events.ModelState) int {
	switch s {
	case events.ModelIsLoaded:
		return 0
	case events.ModelIsWanted:
		return 1
	case events.ModelIsBroken:
		return 3
	}
	return 2
}
