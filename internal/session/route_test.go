package session_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"correx/internal/session"
	"correx/pkg/events"
)

// model is what a script says of one: its name, and scores and slots.
func (s *sim) model(text string) events.ModelOffer {
	s.t.Helper()
	name, rest, _ := strings.Cut(text, ",")
	m := events.ModelOffer{Name: events.ModelID(name), Token: events.Token(name), ContextSize: 4096}
	for _, kv := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' }) {
		k, v, _ := strings.Cut(kv, "=")
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		if k == "slots" {
			m.Slots = int(n)
			continue
		}
		m.Capabilities = append(m.Capabilities, events.CapabilityScore{Capability: events.ModelCapability(k), Score: n})
	}
	return m
}

// becomes reports what became of a model on a worker.
func (s *sim) becomes(words []string) {
	s.t.Helper()
	w, m := events.WorkerID(words[0]), events.ModelID(words[1])
	s.report(modelFact(w, m, words[2]))
}

func modelFact(w events.WorkerID, m events.ModelID, what string) events.Fact {
	ref := events.Ref{Session: events.System, ID: events.ModelAggregateID(w, events.Token(string(m)))}
	switch what {
	case "loaded":
		return events.ModelLoaded{Ref: ref, Model: m, Worker: w}
	case "unloaded":
		return events.ModelUnloaded{Ref: ref, Model: m, Worker: w, Reason: "idle"}
	case "crashed":
		return events.ModelCrashed{Ref: ref, Model: m, Worker: w}
	case "load_requested":
		return events.ModelLoadRequested{Ref: ref, Model: m, Worker: w}
	}
	return events.ModelLoadFailed{Ref: ref, Model: m, Worker: w, Reason: "no such file"}
}

// manyModels is a second worker's announcement, at random.
func (c *chaos) manyModels() []string {
	return []string{"m2", "model:m", c.pick("model:n", "model:n,GENERAL=0.5"), c.pick("model:o", "model:o,slots=3")}
}

// queueIsWhatIsOpen holds what the world counts against the sessions themselves.
// A stranger's request of what has ended, which only a kernel's key could write,
// is counted too: the world does not remember every inference that ever ended.
func (c *chaos) queueIsWhatIsOpen() {
	open, strange := map[string]int{}, 0
	for _, s := range c.states {
		for _, i := range s.Inferences {
			if i.Status() != "" && !i.Status().Ended() {
				open[i.Requested.ModelToken]++
			}
		}
	}
	for _, r := range c.log.recs {
		if _, asked := r.Fact.(events.InferenceRequested); asked && c.strange[r.Seq] && !c.lagged[r.Seq] {
			strange++
		}
	}
	if strange == 0 && !maps.Equal(open, c.world.Queue) {
		c.t.Errorf("open inferences %v, the world has %v", open, c.world.Queue)
	}
	for token, n := range c.world.Queue {
		if over := n - open[token]; over < 0 || over > strange {
			c.t.Errorf("open inferences %v, the world has %v, of strangers %d", open, c.world.Queue, strange)
		}
	}
}

// A room is a world that a test fills.
type room struct {
	t   testing.TB
	w   session.World
	seq uint64
}

func (r *room) fold(fs ...events.Fact) {
	for _, f := range fs {
		r.seq++
		r.w = session.EvolveWorld(r.w, events.Record{Seq: r.seq, Aggregate: events.AggregateOf(f), Fact: f})
	}
}

func (r *room) offer(worker string, models ...string) {
	f := events.WorkerStarted{Ref: events.Ref{Session: events.System, ID: worker}, Role: events.RoleModelWorker, Boot: "b"}
	for _, m := range models {
		f.Models = append(f.Models, (&sim{t: r.t}).model(m))
	}
	r.fold(f)
}

// ask requests n inferences of a model, each of a session of its own.
func (r *room) ask(model string, n int) {
	for range n {
		r.fold(events.InferenceRequested{
			Ref:   events.Ref{Session: events.SessionID(fmt.Sprintf("s%d", r.seq)), ID: "t1"},
			Model: events.ModelID(model), ModelToken: events.Token(model),
		})
	}
}

func TestRoute_EachRule(t *testing.T) {
	for _, c := range []struct {
		rule events.RoutingRule
		want string
		q    session.Want
		make func(r *room)
	}{
		{events.RuleName, "b", session.Want{Model: "b", Capability: events.Coding}, func(r *room) { r.offer("m1", "a,CODING=1", "b") }},
		{events.RuleDefault, "b", session.Want{Model: "b", Default: true}, func(r *room) { r.offer("m1", "a", "b") }},
		{events.RuleOnly, "a", session.Want{}, func(r *room) { r.offer("m1", "a"); r.offer("m2", "a") }},
		{events.RuleTaken, "b", session.Want{Avoid: []events.ModelID{"a"}}, func(r *room) { r.offer("m1", "a,GENERAL=1", "b") }},
		{events.RuleScore, "b", session.Want{Capability: events.Coding}, func(r *room) {
			r.offer("m1", "a,CODING=0.8", "b,CODING=0.9")
			r.fold(modelFact("m1", "a", "loaded"))
		}},
		{events.RuleState, "b", session.Want{}, func(r *room) {
			r.offer("m1", "a", "b")
			r.fold(modelFact("m1", "b", "loaded"))
			r.ask("b", 9)
		}},
		{events.RuleState, "b", session.Want{}, func(r *room) { r.offer("m1", "a", "b"); r.fold(modelFact("m1", "a", "crashed")) }},
		{events.RuleState, "b", session.Want{}, func(r *room) { r.offer("m1", "a", "b"); r.fold(modelFact("m1", "b", "load_requested")) }},
		{events.RuleQueue, "b", session.Want{Last: "a"}, func(r *room) { r.offer("m1", "a", "b"); r.ask("a", 2); r.ask("b", 1) }},
		{events.RuleQueue, "b", session.Want{}, func(r *room) { r.offer("m1", "a", "b,slots=4"); r.ask("a", 1); r.ask("b", 3) }},
		{events.RuleQueue, "b", session.Want{}, func(r *room) {
			r.offer("m1", "a", "b")
			r.offer("m2", "b")
			r.ask("a", 1)
			r.ask("b", 1)
		}},
		{events.RuleLast, "b", session.Want{Last: "b"}, func(r *room) { r.offer("m1", "a", "b") }},
		{events.RuleOrder, "a", session.Want{}, func(r *room) { r.offer("m1", "b", "a") }},
		// What a worker's life took with it does not count.
		{events.RuleOrder, "a", session.Want{}, func(r *room) {
			r.offer("m1", "a", "b")
			r.fold(modelFact("m1", "b", "loaded"))
			r.offer("m1", "a", "b")
		}},
		// Nor what a worker says of a model that it does not offer.
		{events.RuleOrder, "a", session.Want{}, func(r *room) {
			r.offer("m1", "a", "b")
			r.offer("m2", "a")
			r.fold(modelFact("m2", "b", "loaded"))
		}},
	} {
		r := &room{t: t}
		c.make(r)
		got, ok := r.w.Route(c.q)
		if !ok || string(got.What.Name) != c.want || got.Routing.Rule != c.rule {
			t.Errorf("%s: %q by %+v, %v; want %q", c.rule, got.What.Name, got.Routing, ok, c.want)
		}
	}
}

func TestRoute_NobodyOffersIt(t *testing.T) {
	r := &room{t: t}
	for _, q := range []session.Want{{}, {Capability: events.Coding}, {Model: "a"}} {
		if got, ok := r.w.Route(q); ok {
			t.Errorf("%v: %v", q, got)
		}
	}
	r.offer("m1", "a")
	r.fold(events.WorkerStopped{Ref: events.Ref{Session: events.System, ID: "m1"}, Boot: "b"})
	if got, ok := r.w.Route(session.Want{Model: "a"}); ok {
		t.Errorf("of a worker that stopped: %v", got)
	}
}

// randomRoom is a world of several workers and models, announced in some order.
func randomRoom(t *testing.T, rng *rand.Rand, order []int) *room {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	var announce []func(r *room)
	for n := range order {
		name := fmt.Sprintf("%c", 'a'+n)
		model := name + pick("", ",CODING=0.9", ",CODING=0.4", ",GENERAL=0.7") + pick("", ",slots=2", ",slots=5")
		what, asked := pick("loaded", "unloaded", "crashed", "load_requested", "load_failed"), rng.IntN(4)
		announce = append(announce, func(r *room) {
			r.offer("m"+name, model)
			r.fold(modelFact(events.WorkerID("m"+name), events.ModelID(name), what))
			r.ask(name, asked)
		})
	}
	r := &room{t: t}
	for _, n := range order {
		announce[n](r)
	}
	return r
}

// Whatever the world: the choice does not depend on the order in which it came
// about, it is as good as every other by each rule up to the one that is named,
// and without the others it is still the choice.
func TestRoute_Properties(t *testing.T) {
	rules := map[events.RoutingRule]int{}
	for seed := range uint64(2000) {
		n := 1 + int(seed%6)
		order := make([]int, n)
		for k := range order {
			order[k] = k
		}
		one := randomRoom(t, rand.New(rand.NewPCG(seed, 1)), order)
		slices.Reverse(order)
		two := randomRoom(t, rand.New(rand.NewPCG(seed, 1)), order)
		q := session.Want{Capability: events.Coding, Last: events.ModelID(fmt.Sprintf("%c", 'a'+seed%5))}
		if seed%5 == 0 {
			q.Avoid = []events.ModelID{"a", "b"}
		}
		got, ok := one.w.Route(q)
		again, _ := two.w.Route(q)
		if !ok || got.What.Name != again.What.Name || got.Routing != again.Routing {
			t.Fatalf("seed %d: %q by %+v, in another order %q by %+v", seed, got.What.Name, got.Routing, again.What.Name, again.Routing)
		}
		if want := bestOf(one.w, q); got.What.Name != want {
			t.Fatalf("seed %d: %q by %+v, want %q", seed, got.What.Name, got.Routing, want)
		}
		rules[got.Routing.Rule]++
	}
	for _, r := range []events.RoutingRule{
		events.RuleOnly, events.RuleTaken, events.RuleScore, events.RuleState, events.RuleQueue, events.RuleLast, events.RuleOrder,
	} {
		if rules[r] == 0 {
			t.Errorf("rule %q never decided", r)
		}
	}
}

// bestOf is the choice by its definition: rule by rule, only the best stay.
func bestOf(w session.World, q session.Want) events.ModelID {
	field := w.Models()
	states := []events.ModelState{events.ModelIsLoaded, events.ModelIsWanted, events.ModelIsUnloaded, events.ModelIsBroken}
	for _, cost := range []func(o session.Offer[events.ModelOffer]) float64{
		func(o session.Offer[events.ModelOffer]) float64 { return truth(slices.Contains(q.Avoid, o.What.Name)) },
		func(o session.Offer[events.ModelOffer]) float64 {
			for _, k := range o.What.Capabilities {
				if k.Capability == q.Capability {
					return -k.Score
				}
			}
			return 0
		},
		func(o session.Offer[events.ModelOffer]) float64 { return float64(slices.Index(states, w.State(o))) },
		func(o session.Offer[events.ModelOffer]) float64 {
			return float64(w.Queue[o.What.Token]) / float64(max(1, o.What.Slots))
		},
		func(o session.Offer[events.ModelOffer]) float64 { return truth(o.What.Name != q.Last) },
	} {
		least := cost(slices.MinFunc(field, func(a, b session.Offer[events.ModelOffer]) int {
			return int(1000 * (cost(a) - cost(b)))
		}))
		field = slices.DeleteFunc(field, func(o session.Offer[events.ModelOffer]) bool { return cost(o) != least })
	}
	return field[0].What.Name // they are ordered by name
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
