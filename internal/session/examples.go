package session

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"correx/pkg/events"
)

// Small models do what they are shown. So the examples of the tools on offer are
// held against what was asked for last, part by part, and those that resemble it
// most are told as real turns before the task: a task done from its first call to
// its answer. As text in the system prompt they do nothing.

// A sample is an example with the tool that it is of; none: an answer alone.
type sample struct {
	tool string
	events.ToolExample
}

// plainSamples are answered without a tool: what a model knows, and what no tool
// here can do.
var plainSamples = []sample{
	{"", events.ToolExample{Task: "What is the capital of Italy?", Answer: "The capital of Italy is Rome."}},
	{"", events.ToolExample{Task: "What is the opposite of big?", Answer: "The opposite of big is small."}},
	{"", events.ToolExample{Task: "How many legs has a dog?", Answer: "A dog has four legs."}},
	{"", events.ToolExample{Task: "Which colour has grass?", Answer: "Grass is green."}},
	{"", events.ToolExample{Task: "What is 3 plus 5?", Answer: "3 plus 5 is 8."}},
	{"", events.ToolExample{Task: "Say good morning.", Answer: "Good morning!"}},
	{"", events.ToolExample{Task: "Send a letter to Mary.", Answer: "I cannot send a letter: no tool here can do that."}},
	{"", events.ToolExample{Task: "Switch off the radio in the bedroom.", Answer: "I cannot switch off a radio: no tool here can do that."}},
	{"", events.ToolExample{Task: "Find today's news on the web.", Answer: "I cannot find news on the web: no tool here can do that."}},
	{"", events.ToolExample{Task: "Book a table for two at seven.", Answer: "I cannot book a table: no tool here can do that."}},
	{"", events.ToolExample{Task: "Phone the doctor.", Answer: "I cannot phone anybody: no tool here can do that."}},
}

// goalOf is what was asked for last.
func goalOf(s State, f events.InferenceRequested) string {
	goal := s.Started.Task
	for _, m := range s.Messages {
		if m.Seq <= f.Through {
			goal = m.Text
		}
	}
	return goal
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
	return append(all, plainSamples...)
}

// examplesFor is two tasks done with the samples that resemble the goal; they
// differ in names and words alone, as far as there are such.
func examplesFor(goal string, offers []events.ToolOffer) []events.ChatMessage {
	all := samplesOf(offers)
	if len(all) == 0 {
		return nil
	}
	index := newIndex(all)
	var first, second []sample
	for _, part := range parts(goal) {
		s, ok := index.best(part, slices.Concat(first, second), func(sample) bool { return true })
		if !ok {
			continue
		}
		first = append(first, s)
		if t, ok := index.best(part, slices.Concat(first, second), func(t sample) bool {
			return t.kind() == s.kind() && (s.tool == "" || string(t.Parameters) != string(s.Parameters))
		}); ok {
			s = t
		}
		second = append(second, s)
	}
	if len(first) == 0 { // nothing here is like it, so most likely nothing here can do it
		for _, s := range plainSamples {
			if s.kind() == "cannot" {
				first, second = append(second, s), first
			}
			if len(second) > 0 {
				break
			}
		}
	}
	msgs := told(first)
	if !slices.EqualFunc(first, second, func(a, b sample) bool { return a.Task == b.Task }) {
		msgs = append(told(second), msgs...)
	}
	return msgs
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

// telling are verbs that ask for an answer, and for no call of its own.
var telling = map[string]bool{"tell": true, "say": true, "answer": true, "explain": true, "give": true, "what": true, "which": true}

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
		if !ok {
			rare = math.Log(1 + float64(len(x.all)))
			n /= 2 // what no sample has cannot tell them apart
		}
		out[w] = n * rare
		sum += out[w] * out[w]
	}
	for w := range out {
		out[w] /= math.Sqrt(sum)
	}
	return out
}

// unknown are the words of a text that no sample has, as they are written.
func (x index) unknown(text string) []string {
	var out []string
	for _, w := range strings.Fields(text) {
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		for k := range words("x " + w) {
			if _, known := x.rare[k]; !known && k != "x" && !small[strings.ToLower(w)] && !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}

// leastLike is how much a sample must resemble a part.
const leastLike = 0.1

// best returns the sample most like a part that is not in the chain yet.
func (x index) best(part string, chain []sample, ok func(sample) bool) (sample, bool) {
	of, most, at := x.weigh(part), leastLike, -1
	for k, s := range x.all {
		if slices.ContainsFunc(chain, func(c sample) bool { return c.Task == s.Task }) {
			continue
		}
		if !ok(s) {
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

// words are the words of a text, with how much each says: the first one, which
// is mostly what is to be done, says most. Names of files are all one word.
func words(text string) map[string]float64 {
	out := map[string]float64{}
	for k, w := range strings.Fields(strings.ToLower(text)) {
		w = strings.TrimFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		weight := 1.0
		switch {
		case w == "":
			continue
		case strings.ContainsAny(w, "./_"):
			w = "<file>"
		case small[w]:
			weight = 0.3
		}
		if k == 0 {
			weight = 2
		}
		out[stem(w)] = max(out[stem(w)], weight)
	}
	if out["<file>"] == 0 {
		out["<no file>"] = 1
	}
	return out
}

// small are words that say little of what is wanted.
var small = map[string]bool{
	"the": true, "a": true, "an": true, "of": true, "to": true, "in": true, "on": true, "is": true, "it": true, "and": true,
	"me": true, "my": true, "please": true, "for": true, "at": true, "with": true, "what": true, "that": true, "this": true, "by": true,
}

// stem drops the commonest endings.
func stem(w string) string {
	for _, end := range []string{"ing", "ed", "es", "s"} {
		if t, ok := strings.CutSuffix(w, end); ok && len(t) > 2 {
			return t
		}
	}
	return w
}

// exampleFirst orders offers as the schema and the system prompt have them: as
// they come.
func exampleFirst(offers []events.ToolOffer) []events.ToolOffer { return offers }
