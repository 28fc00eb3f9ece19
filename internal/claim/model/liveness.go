package model

// Liveness returns the traces into states from which goal need not be reached: in
// the graph of the states outside goal and the steps that may be relied upon,
// there must be no bottom component, and no cycle that weak fairness allows. It
// is called after Search.
func (c *Checker) Liveness(goal Goal) []Violation {
	g := c.graph(goal)
	for v := range g.demanded {
		if g.demanded[v] && g.index[v] == 0 {
			g.visit(uint32(v))
		}
	}
	var out []Violation
	for _, f := range []struct {
		code  string
		found uint32
		times int
	}{
		{"stuck: no step that may be relied upon leads on", g.deadEnd, g.deadEnds},
		{"livelock: a fair cycle", g.cycle, g.cycles},
	} {
		if f.times > 0 {
			trace := c.trace(f.found, nil)
			out = append(out, Violation{Code: f.code, Times: f.times, Steps: len(trace) - 1, Trace: trace})
		}
	}
	return out
}

// A graph is the states outside a goal with their reliable steps, and the state
// of Tarjan's search for its components.
type graph struct {
	demanded []bool
	offset   []uint32 // of a state's steps
	to       []uint32
	class    []uint8
	classes  int

	counter, components uint32
	index, low          []uint32
	component, next     []uint32
	open                []bool
	stack               []uint32

	deadEnd, cycle   uint32
	deadEnds, cycles int
}

func (c *Checker) graph(goal Goal) *graph {
	n := len(c.keys)
	g := &graph{
		demanded: make([]bool, n), offset: make([]uint32, n+1), classes: c.m.Classes(),
		index: make([]uint32, n), low: make([]uint32, n), component: make([]uint32, n), next: make([]uint32, n),
		open: make([]bool, n), deadEnd: noParent, cycle: noParent,
	}
	for i, key := range c.keys {
		g.offset[i] = uint32(len(g.to))
		if c.m.Goal(key, goal) || !c.m.Assume(key) {
			continue
		}
		g.demanded[i] = true
		c.m.Succ(c.m.Unpack(key), func(k Key, _ any, class uint8, good bool, _ string, _ func() string) {
			if id, ok := c.find(k); good && ok {
				g.to = append(g.to, id)
				g.class = append(g.class, class)
			}
		})
	}
	g.offset[n] = uint32(len(g.to))
	return g
}

// visit finds the components that can be reached from root.
func (g *graph) visit(root uint32) {
	calls := []uint32{root}
	for len(calls) > 0 {
		v := calls[len(calls)-1]
		if g.index[v] == 0 {
			g.enter(v)
		}
		if w, ok := g.descend(v); ok {
			calls = append(calls, w)
			continue
		}
		if g.low[v] == g.index[v] {
			g.close(v)
		}
		calls = calls[:len(calls)-1]
		if len(calls) > 0 {
			u := calls[len(calls)-1]
			g.low[u] = min(g.low[u], g.low[v])
			g.next[u]++
		}
	}
}

func (g *graph) enter(v uint32) {
	g.counter++
	g.index[v], g.low[v] = g.counter, g.counter
	g.next[v] = g.offset[v]
	g.stack = append(g.stack, v)
	g.open[v] = true
}

// descend returns the next state to visit below v.
func (g *graph) descend(v uint32) (uint32, bool) {
	for ; g.next[v] < g.offset[v+1]; g.next[v]++ {
		w := g.to[g.next[v]]
		switch {
		case !g.demanded[w]:
		case g.index[w] == 0:
			return w, true
		case g.open[w]:
			g.low[v] = min(g.low[v], g.index[w])
		}
	}
	return 0, false
}

// close takes the component of v off the stack and judges it.
func (g *graph) close(v uint32) {
	g.components++
	at := len(g.stack)
	for {
		at--
		w := g.stack[at]
		g.open[w] = false
		g.component[w] = g.components
		if w == v {
			break
		}
	}
	g.judge(g.stack[at:])
	g.stack = g.stack[:at]
}

func (g *graph) judge(members []uint32) {
	id := g.component[members[0]]
	leaves, internal := false, false
	always, taken := make([]bool, g.classes), make([]bool, g.classes)
	for i := range always {
		always[i] = true
	}
	lowest := members[0]
	for _, v := range members {
		lowest = min(lowest, v)
		enabled := make([]bool, g.classes)
		for e := g.offset[v]; e < g.offset[v+1]; e++ {
			w := g.to[e]
			enabled[g.class[e]] = true
			switch {
			case g.component[w] != id:
				leaves = true
			case w != v: // standing still is no step
				internal = true
				taken[g.class[e]] = true
			}
		}
		for i := range always {
			always[i] = always[i] && enabled[i]
		}
	}
	if !leaves {
		g.deadEnds++
		g.deadEnd = min(g.deadEnd, lowest)
		return
	}
	for i := range always {
		if always[i] && !taken[i] {
			return // weak fairness forbids to stay here
		}
	}
	if internal {
		g.cycles++
		g.cycle = min(g.cycle, lowest)
	}
}
