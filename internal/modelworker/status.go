package modelworker

import (
	"correx/pkg/events"
	"correx/pkg/llama"
)

// A Status is a model as it is announced, and what goes on with it at this moment.
type Status struct {
	events.ModelOffer
	llama.Usage
}

// statuses are those of all models, in the order of the configuration.
func (p *process) statuses() []Status {
	all := make([]Status, 0, len(p.o.Models))
	for _, m := range p.o.Models {
		all = append(all, Status{m.Offer(m.Capabilities), p.fleet.of(m.ModelID).Usage(m.Descriptor)})
	}
	return all
}
