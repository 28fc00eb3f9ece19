package session

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"unicode"
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
	first, second := newIndex(all).like(goalOf(s, f.Through))
	if slices.EqualFunc(first, second, func(a, b sample) bool { return a.Task == b.Task }) {
		return told(first)
	}
	return append(told(second), told(first)...)
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

// like returns two chains of samples that resemble a goal, the best first. They
// differ in names and words alone, as far as there are such.
func (x index) like(goal string) (first, second []sample) {
	for _, part := range parts(goal) {
		s, ok := x.best(part, slices.Concat(first, second), func(sample) bool { return true })
		if !ok {
			continue
		}
		first = append(first, s)
		other := func(t sample) bool {
			return t.kind() == s.kind() && (s.tool == "" || !bytes.Equal(t.Parameters, s.Parameters))
		}
		if t, ok := x.best(part, slices.Concat(first, second), other); ok {
			s = t
		}
		second = append(second, s)
	}
	if len(first) > 0 {
		return first, second
	}
	if words(goal)[aQuestion] > 0 {
		return knownSamples[:1], knownSamples[1:2]
	}
	// Nothing here is like it, so most likely nothing here can do it.
	return cannotSamples[:1], cannotSamples[1:2]
}

// kind is the tool and what is done with it: the first text of its parameters.
func (s sample) kind() string {
	if s.tool == "" && strings.HasPrefix(s.Answer, "I cannot") {
		return "cannot"
	}
	_, rest, _ := strings.Cut(string(s.Parameters), ":")
	what, _, _ := strings.Cut(strings.TrimLeft(rest, `[ "`), `"`)
	return s.tool + " " + what
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

// maxParts is how many parts of a goal are looked at.
const maxParts = 3

// parts takes a goal apart where it goes on to something else.
func parts(goal string) []string {
	text := goal
	for _, sep := range []string{", and then ", " and then ", ", then ", "; ", ". ", ", and ", " and ", "\n"} {
		text = strings.ReplaceAll(text, sep, "\x00")
	}
	var out []string
	for _, p := range strings.Split(text, "\x00") {
		p = strings.TrimSpace(p)
		verb, _, more := strings.Cut(strings.ToLower(p), " ")
		switch {
		case p == "", !more && len(out) > 0:
		case len(out) > 0 && telling[verb]:
			out[len(out)-1] += " and " + p
		default:
			out = append(out, p)
		}
	}
	if len(out) > maxParts {
		out = out[:maxParts]
	}
	return out
}

// An index finds samples by the words of their tasks.
type index struct {
	all  []sample
	seen []map[string]float64 // weights of the words, of length 1
	rare map[string]float64   // by word: how few have it
}

func newIndex(all []sample) index {
	x := index{all: all, rare: map[string]float64{}}
	for _, s := range all {
		for w := range words(s.Task) {
			x.rare[w]++
		}
	}
	for w, n := range x.rare {
		x.rare[w] = math.Log(1 + float64(len(all))/n)
	}
	for _, s := range all {
		x.seen = append(x.seen, x.weigh(s.Task))
	}
	return x
}

func (x index) weigh(text string) map[string]float64 {
	out := words(text)
	sum := 0.0
	for w, n := range out {
		rare, ok := x.rare[w]
		if !ok { // what no sample has cannot tell them apart
			rare, n = math.Log(1+float64(len(x.all))), n/2
		}
		out[w] = n * rare
		sum += out[w] * out[w]
	}
	for w := range out {
		out[w] /= math.Sqrt(sum)
	}
	return out
}

// How much a sample must resemble a part: less where both are about files, for
// then some tool is meant.
const (
	leastLike     = 0.3
	leastLikeFile = 0.1
)

// best returns the sample most like a part that ok takes and that is not among
// those that are had. One is about files if the other is.
func (x index) best(part string, had []sample, ok func(sample) bool) (sample, bool) {
	of, most, at := x.weigh(part), leastLike, -1
	if of[aFile] > 0 {
		most = leastLikeFile
	}
	for k, s := range x.all {
		aboutFiles := (of[aFile] > 0) == (x.seen[k][aFile] > 0) || refersBack(part)
		if !aboutFiles || slices.ContainsFunc(had, func(h sample) bool { return h.Task == s.Task }) || !ok(s) {
			continue
		}
		like := 0.0
		for w, n := range of {
			like += n * x.seen[k][w]
		}
		if like > most {
			most, at = like, k
		}
	}
	if at < 0 {
		return sample{}, false
	}
	return x.all[at], true
}

// unknown are the words of a text that no sample has, as they are written.
func (x index) unknown(text string) []string {
	var out []string
	for _, w := range strings.Fields(text) {
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		_, known := x.rare[stem(strings.ToLower(w))]
		if w != "" && !known && !small[strings.ToLower(w)] && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}
