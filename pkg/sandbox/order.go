package sandbox

import (
	"fmt"
	"slices"
	"sync"

	"correx/pkg/sandbox/stage"
	"correx/pkg/tools"
)

// stageEnv keeps a stage small: it never collects garbage and needs one core.
var stageEnv = []string{"GOGC=off", "GOMAXPROCS=1"}

// order makes the order for a command. What is made for it is p's to give back,
// also when it fails.
func (r *Runner) order(c tools.Command, p *process) (o stage.Order, err error) {
	limits := over(c.Limits, r.o.Limits)
	o = stage.Order{
		Path: c.Path, Argv: c.Argv, Env: c.Env, Dir: c.Dir, Timeout: c.Timeout, Level: r.level, Network: c.Network,
		Limits: stage.Limits(limits), Scratch: scratchSize,
	}
	if r.level == stage.None {
		return o, nil
	}
	if p.group, err = newGroup(limits); err != nil {
		return o, err
	}
	switch g := p.group; {
	case g != nil && g.into:
		o.Cgroup = g.memory
	case g != nil:
		o.Tasks = g.tasks
	}
	if o.Filter, err = filterFor(c.Network, r.level); err != nil {
		return o, err
	}
	if r.level == stage.FSOnly {
		if len(c.Overlays) > 0 {
			err = fmt.Errorf("%w: there are no namespaces", tools.ErrNoOverlay)
		}
		return o, err
	}
	plan, err := r.planFor(c)
	p.held = plan.held
	if err != nil {
		return o, err
	}
	o.Nodes = plan.nodes
	for _, x := range plan.ops {
		o.Mounts = append(o.Mounts, x.Mount)
	}
	return o, nil
}

// rules are what Landlock is to allow.
func (r *Runner) rules(c tools.Command) []rule {
	if r.level == stage.Full {
		return []rule{{path: "/"}} // what may be written follows from the mounts
	}
	return r.rulesFor(c)
}

type filterKey struct {
	network bool
	level   stage.Level
}

var filters = struct {
	sync.Mutex
	made map[filterKey][]stage.Filter
}{made: map[filterKey][]stage.Filter{}}

// filterFor makes each filter once.
func filterFor(network bool, level stage.Level) ([]stage.Filter, error) {
	filters.Lock()
	defer filters.Unlock()
	key := filterKey{network, level}
	if f, ok := filters.made[key]; ok {
		return f, nil
	}
	f, err := makeFilter(network, level)
	if err == nil {
		filters.made[key] = f
	}
	return slices.Clip(f), err
}
