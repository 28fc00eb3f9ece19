package testmodel

import (
	"fmt"
	"math"
)

// What a token says of the next one, by how much it is wanted. The steps are so
// wide that neither temperature nor a repeat penalty changes the order, and
// below them all lie the preferences of [ground].
const (
	wanted     = 4000
	fallback   = 800
	lastResort = 160
)

// slowTokens is how many tokens without use a slow model has. Each token of an
// answer costs a row of weights for every one of them; a prompt's cost nothing.
const slowTokens = 100000

// bigrams are the model: how much one token wants another after it.
type bigrams map[[2]int]float32

// want lets b follow a, unless it is wanted more already.
func (b bigrams) want(a, c int, much float32) {
	b[[2]int{a, c}] = max(b[[2]int{a, c}], much)
}

// turn adds a turn token and the answers that may follow it, each one token,
// after which the model's turn ends.
func (b bigrams) turn(v *vocabulary, token string, answers ...string) {
	from := v.add(token, control)
	for i, much := range []float32{wanted, fallback, lastResort} {
		answer := v.add(answers[i], userDefined)
		b.want(from, answer, much)
		if answers[i] == Endless {
			more := v.ids["z"]
			b.want(answer, more, wanted)
			b.want(more, more, wanted)
			continue
		}
		b.want(answer, v.ids[end], wanted)
	}
}

// model is the table as a network: a one-hot embedding, a layer that does
// nothing, and an output matrix whose columns are the rows of the table.
func (b bigrams) model(v *vocabulary, template string, slow bool) *gguf {
	used := len(v.tokens)
	width := (used + 31) / 32 * 32
	if slow {
		for i := range slowTokens {
			v.add(fmt.Sprintf("<unused:%d>", i), control)
		}
	}
	embedding := make([]float32, width*used)
	output := make([]float32, width*used)
	likings := ground(v)
	for id := range used {
		embedding[id*width+id] = 16
		for from := range used {
			output[id*width+from] = likings[id] + b[[2]int{from, id}]
		}
	}

	s := shape{embedding: width, layers: 1, feedForward: 32, heads: 1, head: 32}
	g := new(gguf)
	g.describe(v, s, template)
	g.tensor("token_embd.weight", embedding, width, len(v.tokens))
	g.tensor("output_norm.weight", ones(width), width)
	g.tensor("output.weight", output, width, len(v.tokens))
	g.layer(0, s, func(int) []float32 { return nil })
	return g
}

// ground is how much each token is liked after any other. It matters only where
// a grammar admits no scripted answer: then the model ends what is open as soon
// as the grammar lets it, and prefers "final" to "tool".
func ground(v *vocabulary) []float32 {
	likings := make([]float32, len(v.tokens))
	for id, kind := range v.types {
		if kind == normal {
			likings[id] = 2
		}
	}
	likings[v.ids[space]] = 1
	likings[v.ids[`\`]] = 1
	for i, text := range []string{"1", "0", "f", "[", "{", ":", ",", "]", "}", "a", `"`, end} {
		likings[v.ids[text]] = float32(2 * math.Pow(1.4, float64(i+1)))
	}
	return likings
}
