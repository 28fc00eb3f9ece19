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

// order makes the order for a command. held are directories that were made for
// it, also when it fails; rules are for Landlock.
func (r *Runner) order(c tools.Command) (o stage.Order, rules []rule, held []string, err error) {
	o = stage.Order{
		Path: c.Path, Argv: c.Argv, Env: c.Env, Dir: c.Dir, Timeout: c.Timeout, Level: r.level, Network: c.Network,
		Limits: stage.Limits(over(c.Limits, r.o.Limits)), Scratch: scratchSize,
	}
	if r.level == stage.None {
		return o, nil, nil, nil
	}
	if o.Filter, err = filterFor(c.Network, r.level); err != nil {
		return o, nil, nil, err
	}
	if r.level == stage.FSOnly {
		if len(c.Overlays) > 0 {
			return o, nil, nil, fmt.Errorf("%w: there are no namespaces", tools.ErrNoOverlay)
		}
		return o, r.rulesFor(c), nil, nil
	}
	p, err := r.planFor(c)
	if err != nil {
		return o, nil, p.held, err
	}
	o.Nodes = p.nodes
	for _, x := range p.ops {
		o.Mounts = append(o.Mounts, x.Mount)
	}
	return o, []rule{{path: "/"}}, p.held, nil
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
