package model

import (
	"fmt"
	"io"
	"slices"
)

// A Key is a packed state.
type Key [2]uint64

// Emit receives one successor: its key, its fairness class, whether the step may
// be relied upon (no fault, no person, no adversary), a violation ("": none), and
// its label.
type Emit func(k Key, raw any, class uint8, good bool, violation string, label func() string)

// A Model is what is checked.
type Model interface {
	Init() []any
	Pack(any) Key   // canonical under symmetry
	Unpack(Key) any // a representative
	Succ(s any, emit Emit)
	Properties
}

// Properties is what must hold of a model.
type Properties interface {
	Invariant(Key) string        // "" or a violation
	Goal(k Key, which Goal) bool // what must be reached
	Assume(Key) bool             // reaching it is demanded from these states only
	Classes() int                // of fairness
}

// A Goal is something that must be reached in the end.
type Goal int

const (
	EndReached Goal = 1 // (4) an end is on the log
	Settled    Goal = 2 // (4') and is acked, with nothing open
)

// A Violation is a trace that ended badly; the shortest of its code.
type Violation struct {
	Code  string
	Times int
	Steps int
	Trace []Step
}

// A Step is one step of a trace.
type Step struct{ Label, State string }

// Shower describes states for people.
type Shower interface{ Show(any) string }

// A Checker searches a model.
type Checker struct {
	Max int // states, then it gives up; 0: 90 million

	m         Model
	table     []uint32 // open addressing, index+1
	mask      uint64
	keys      []Key
	parents   []uint32
	found     map[string]*finding
	truncated bool
	trans     int64
}

// A finding is where a violation was first met.
type finding struct {
	parent uint32
	key    Key
	last   bool // it is on the step from parent to key
	times  int
}

const noParent = ^uint32(0)

// NewChecker returns a checker that has searched nothing yet.
func NewChecker(m Model) *Checker {
	return &Checker{Max: 90_000_000, m: m, table: make([]uint32, 1<<16), mask: 1<<16 - 1, found: map[string]*finding{}}
}

// States is how many were found.
func (c *Checker) States() int { return len(c.keys) }

// Truncated reports whether the search was given up at Max.
func (c *Checker) Truncated() bool { return c.truncated }

// Search visits every state and returns the violations that it met, by code.
func (c *Checker) Search() []Violation {
	for _, s := range c.m.Init() {
		c.add(c.m.Pack(s), noParent)
	}
	for i := 0; i < len(c.keys); i++ {
		if len(c.keys) > c.Max {
			c.truncated = true
			break
		}
		c.expand(uint32(i))
	}
	var all []Violation
	for code, f := range c.found {
		all = append(all, c.violation(code, f))
	}
	slices.SortFunc(all, func(a, b Violation) int {
		if a.Code < b.Code {
			return -1
		}
		return 1
	})
	return all
}

func (c *Checker) expand(i uint32) {
	c.m.Succ(c.m.Unpack(c.keys[i]), func(k Key, _ any, _ uint8, _ bool, violation string, _ func() string) {
		c.trans++
		if violation != "" {
			c.note(violation, finding{parent: i, key: k, last: true})
		}
		id, isNew := c.add(k, i)
		if !isNew {
			return
		}
		if code := c.m.Invariant(k); code != "" {
			c.note(code, finding{parent: id})
		}
	})
}

func (c *Checker) note(code string, f finding) {
	if c.found[code] == nil {
		c.found[code] = &f
	}
	c.found[code].times++
}

func hash(k Key) uint64 {
	h := k[0]*0x9E3779B97F4A7C15 ^ (k[1]+0x7F4A7C15)*0xC2B2AE3D27D4EB4F
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return h ^ h>>32
}

func (c *Checker) slot(k Key) uint64 {
	p := hash(k) & c.mask
	for c.table[p] != 0 && c.keys[c.table[p]-1] != k {
		p = (p + 1) & c.mask
	}
	return p
}

func (c *Checker) find(k Key) (uint32, bool) {
	id := c.table[c.slot(k)]
	return id - 1, id != 0
}

func (c *Checker) add(k Key, parent uint32) (uint32, bool) {
	if len(c.keys)*10 > len(c.table)*6 {
		c.grow()
	}
	p := c.slot(k)
	if c.table[p] != 0 {
		return c.table[p] - 1, false
	}
	c.keys = append(c.keys, k)
	c.parents = append(c.parents, parent)
	c.table[p] = uint32(len(c.keys))
	return uint32(len(c.keys) - 1), true
}

func (c *Checker) grow() {
	c.table = make([]uint32, len(c.table)*2)
	c.mask = uint64(len(c.table) - 1)
	for i, k := range c.keys {
		c.table[c.slot(k)] = uint32(i + 1)
	}
}

func (c *Checker) violation(code string, f *finding) Violation {
	var last *Key
	if f.last {
		last = &f.key
	}
	trace := c.trace(f.parent, last)
	return Violation{Code: code, Times: f.times, Steps: len(trace) - 1, Trace: trace}
}

// trace is the way from an initial state to id, and on to last if that is given.
func (c *Checker) trace(id uint32, last *Key) []Step {
	var path []Key
	for ; id != noParent; id = c.parents[id] {
		path = append(path, c.keys[id])
	}
	slices.Reverse(path)
	if last != nil {
		path = append(path, *last)
	}
	var state any
	for _, s := range c.m.Init() {
		if c.m.Pack(s) == path[0] {
			state = s
		}
	}
	trace := []Step{{"start", c.show(state)}}
	for n := 1; n < len(path); n++ {
		next, label := c.step(state, path[n], n == len(path)-1 && last != nil)
		if next == nil {
			return append(trace, Step{"(the trace cannot be made again)", ""})
		}
		state = next
		trace = append(trace, Step{label, c.show(state)})
	}
	return trace
}

// step finds the step from a state to the one that k packs; bad: the violating one.
func (c *Checker) step(state any, k Key, bad bool) (next any, label string) {
	c.m.Succ(state, func(key Key, raw any, _ uint8, _ bool, violation string, text func() string) {
		if next != nil || key != k || bad && violation == "" {
			return
		}
		next, label = raw, text()
		if violation != "" {
			label += "  !!"
		}
	})
	return next, label
}

func (c *Checker) show(state any) string {
	if s, ok := c.m.(Shower); ok {
		return s.Show(state)
	}
	return ""
}

// Print writes a violation with its trace.
func (v Violation) Print(w io.Writer) {
	fmt.Fprintf(w, "%s (found %d times; shortest %d steps)\n", v.Code, v.Times, v.Steps)
	for n, s := range v.Trace {
		fmt.Fprintf(w, "  %2d. %-58s %s\n", n, s.Label, s.State)
	}
}
