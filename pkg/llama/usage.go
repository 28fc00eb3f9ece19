package llama

import "time"

// A Standing is where a model stands with its manager.
type Standing string

const (
	StandsUnloaded  Standing = "unloaded"
	StandsLoading   Standing = "loading"
	StandsLoaded    Standing = "loaded"
	StandsUnloading Standing = "unloading" // serves what it has, or its process is being ended
	StandsResting   Standing = "resting"   // after failures: not loaded before Until
)

// A Usage is what a manager has to do with one model at a moment.
type Usage struct {
	State   Standing  `json:"state"`
	Busy    int       `json:"busy"`    // uses in flight
	Waiting int       `json:"waiting"` // for a load, a swap or a slot
	Until   time.Time `json:"until,omitzero"`
	Reason  string    `json:"reason,omitempty"` // of the last failure, while it rests
}

// Usage tells how it stands with a model. A manager that is closed has none.
func (m *Manager) Usage(d Descriptor) Usage {
	d = d.withDefaults()
	u := Usage{State: StandsUnloaded}
	m.do(func() {
		for _, t := range m.waiting {
			if t.desc.ModelID == d.ModelID {
				u.Waiting++
			}
		}
		if m.phase != empty && m.want.ModelID == d.ModelID {
			u.State, u.Busy = standings[m.phase], m.inFlight
			return
		}
		if r := m.records[d.launchKey()]; r != nil && time.Now().Before(r.until) {
			u.State, u.Until, u.Reason = StandsResting, r.until, r.last
		}
	})
	return u
}

var standings = map[phase]Standing{
	loading: StandsLoading, ready: StandsLoaded, draining: StandsUnloading, stopping: StandsUnloading,
}
