package session

import (
	"slices"
	"strings"
	"unicode/utf8"

	"correx/pkg/events"
)

// Models do what they are shown, small ones nothing else. So tasks that are done
// with the tools on offer stand before the task as real turns, each from its first
// call to its answer. As text in the system prompt they do nothing.
//
// For a model that is guided, the examples of the tools are held against what was
// asked for last, part by part, and those that resemble it most are told.

// A sample is an example with the tool that it is of; none: an answer alone.
type sample struct {
	tool string
	events.ToolExample
}

// knownSamples are answered without a tool.
var knownSamples = []sample{
	{"", events.ToolExample{Task: "What is the capital of Italy?", Answer: "The capital of Italy is Rome."}},
	{"", events.ToolExample{Task: "What is the opposite of big?", Answer: "The opposite of big is small."}},
	{"", events.ToolExample{Task: "How many legs has a dog?", Answer: "A dog has four legs."}},
	{"", events.ToolExample{Task: "Which colour has grass?", Answer: "Grass is green."}},
	{"", events.ToolExample{Task: "What is 3 plus 5?", Answer: "3 plus 5 is 8."}},
	{"", events.ToolExample{Task: "Say good morning.", Answer: "Good morning!"}},
}

// cannot begins the answers to what no tool here can do.
const cannot = "I cannot "

// cannotSamples are what no tool here can do.
var cannotSamples = []sample{
	{"", events.ToolExample{Task: "Send a letter to Mary.", Answer: "I cannot send a letter: no tool here can do that."}},
	{"", events.ToolExample{Task: "Switch off the radio in the bedroom.", Answer: "I cannot switch off a radio: no tool here can do that."}},
	{"", events.ToolExample{Task: "Find today's news on the web.", Answer: "I cannot find news on the web: no tool here can do that."}},
	{"", events.ToolExample{Task: "Book a table for two at seven.", Answer: "I cannot book a table: no tool here can do that."}},
	{"", events.ToolExample{Task: "Phone the doctor.", Answer: "I cannot phone anybody: no tool here can do that."}},
}

// goalOf is what was asked for last, as far as through.
func goalOf(s State, through uint64) string {
	goal, _ := goalSince(s, through)
	return goal
}

// goalSince also says at which sequence; 0 is the task.
func goalSince(s State, through uint64) (goal string, since uint64) {
	goal = s.Started.Task
	for _, m := range s.Messages {
		if m.Seq <= through {
			goal, since = m.Text, m.Seq
		}
	}
	return goal, since
}

func samplesOf(offers []events.ToolOffer) []sample {
	var all []sample
	for _, o := range offers {
		if o.Example != nil {
			all = append(all, sample{o.Name, *o.Example})
		}
		for _, e := range o.Examples {
			all = append(all, sample{o.Name, e})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return slices.Concat(all, knownSamples, cannotSamples)
}

// examplesFor is the turns that stand before the task.
func examplesFor(s State, f events.InferenceRequested, offers []events.ToolOffer) []events.ChatMessage {
	if !f.Guided {
		return told(exampleChain(offers))
	}
	all := samplesOf(offers)
	if len(all) == 0 {
		return nil
	}
	other, best := planOf(goalOf(s, f.Through), offers).chains()
	if slices.EqualFunc(other, best, func(a, b sample) bool { return a.Task == b.Task }) {
		return told(best)
	}
	return append(told(other), told(best)...)
}

// exampleChain is a tool that writes and one that reads, if there are such, else
// the first tool that has an example.
func exampleChain(offers []events.ToolOffer) []sample {
	var first, write, read *events.ToolOffer
	for k, o := range offers {
		if o.Example == nil {
			continue
		}
		if first == nil {
			first = &offers[k]
		}
		for _, c := range o.Capabilities {
			if c == events.FileWrite && (write == nil || o.Tier < write.Tier) {
				write = &offers[k]
			}
			if c == events.FileRead && read == nil {
				read = &offers[k]
			}
		}
	}
	switch {
	case write != nil && read != nil:
		return []sample{{write.Name, *write.Example}, {read.Name, *read.Example}}
	case first != nil:
		return []sample{{first.Name, *first.Example}}
	}
	return nil
}

// told is a chain of samples as one task and its turns.
func told(chain []sample) []events.ChatMessage {
	if len(chain) == 0 {
		return nil
	}
	msgs := []events.ChatMessage{user(joined(chain))}
	for _, s := range chain {
		if s.tool == "" {
			continue
		}
		msgs = append(msgs,
			events.ChatMessage{Role: events.RoleAssistant, Content: Call(s.tool, s.Parameters)},
			user(success(s.tool, s.Result)))
	}
	return append(msgs, events.ChatMessage{Role: events.RoleAssistant, Content: Final(chain[len(chain)-1].Answer)})
}

// joined is the tasks of a chain as a person would say them: two sentences make
// small models take the last one for the task.
func joined(chain []sample) string {
	task := chain[0].Task
	for _, s := range chain[1:] {
		first, size := utf8.DecodeRuneInString(s.Task)
		if size == 0 {
			continue
		}
		task = strings.TrimSuffix(task, ".") + " and " + strings.ToLower(string(first)) + s.Task[size:]
	}
	return task
}
