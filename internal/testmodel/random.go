package testmodel

import "math/rand"

// Random writes a model of half a megabyte with random weights: it says
// anything, at thousands of tokens a second, and hardly ever ends by itself.
// The same seed gives the same file.
func Random(path string, seed int64) error {
	rng := rand.New(rand.NewSource(seed))
	weights := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rng.NormFloat64() * 0.3)
		}
		return v
	}
	s := shape{embedding: 64, layers: 2, feedForward: 128, heads: 4, head: 16}
	v := newVocabulary()
	n := len(v.tokens)

	var g gguf
	g.describe(v, s, template(nil))
	g.tensor("token_embd.weight", weights(s.embedding*n), s.embedding, n)
	g.tensor("output_norm.weight", ones(s.embedding), s.embedding)
	g.tensor("output.weight", weights(s.embedding*n), s.embedding, n)
	for i := range s.layers {
		g.layer(i, s, weights)
	}
	return g.save(path)
}
