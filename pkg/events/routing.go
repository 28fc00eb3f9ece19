package events

// A Routing says why an inference was asked of a model, and what the kernel knew
// of it then.
type Routing struct {
	Rule       RoutingRule     `json:"rule"`
	Capability ModelCapability `json:"capability,omitempty"` // by which models were compared
	Score      float64         `json:"score,omitempty"`      // the model's, at that
	Among      int             `json:"among,omitempty"`      // models that were compared
	State      ModelState      `json:"state,omitempty"`      // of the model
	Queue      int             `json:"queue,omitempty"`      // inferences of all sessions that had been asked of it and had not ended
}

// A RoutingRule is what set a model apart from all others. They are listed in
// the order in which models are compared.
type RoutingRule string

const (
	RuleName    RoutingRule = "name"    // the session, or who asks, names it
	RuleDefault RoutingRule = "default" // the settings name it
	RuleOnly    RoutingRule = "only"    // there is no other
	RuleTaken   RoutingRule = "taken"   // nobody took what was asked of the others
	RuleScore   RoutingRule = "score"   // the best at the capability
	RuleState   RoutingRule = "state"   // the soonest ready
	RuleQueue   RoutingRule = "queue"   // the fewest open inferences for each of its slots
	RuleLast    RoutingRule = "last"    // it answered the session last
	RuleOrder   RoutingRule = "order"   // the first by name
)

// A ModelState is where a model stands, as its facts tell.
type ModelState string

const (
	ModelIsUnloaded ModelState = "unloaded"
	ModelIsWanted   ModelState = "load_requested"
	ModelIsLoaded   ModelState = "loaded"
	ModelIsBroken   ModelState = "broken" // it crashed or did not load, and has not been loaded since
)
