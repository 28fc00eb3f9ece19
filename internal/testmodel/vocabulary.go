package testmodel

import "fmt"

// Token types of the llama tokenizer.
const (
	normal      = 1
	unknown     = 2
	control     = 3
	userDefined = 4
	byteToken   = 6
)

const (
	bos   = "<s>"
	eos   = "</s>"
	start = "<|im_start|>"
	end   = "<|im_end|>"
	space = "▁" // how the tokenizer spells one
)

// A vocabulary is the model's tokens in order. A token's text is unique, for
// the server aborts on a duplicate.
type vocabulary struct {
	tokens []string
	types  []int32
	ids    map[string]int
}

// newVocabulary has every byte and every printable ASCII character, so that any
// text can be spelled.
func newVocabulary() *vocabulary {
	v := &vocabulary{ids: make(map[string]int)}
	v.add("<unk>", unknown)
	v.add(bos, control)
	v.add(eos, control)
	for b := range 256 {
		v.add(fmt.Sprintf("<0x%02X>", b), byteToken)
	}
	v.add(space, normal)
	for c := '!'; c <= '~'; c++ {
		v.add(string(c), normal)
	}
	v.add(start, control)
	v.add(end, control)
	return v
}

// add returns the token's id; a text that is there already keeps its type.
func (v *vocabulary) add(text string, kind int32) int {
	if id, ok := v.ids[text]; ok {
		return id
	}
	id := len(v.tokens)
	v.tokens = append(v.tokens, text)
	v.types = append(v.types, kind)
	v.ids[text] = id
	return id
}

// A shape is the size of a model.
type shape struct {
	embedding, layers, feedForward, heads, head int
}

// describe writes the metadata.
func (g *gguf) describe(v *vocabulary, s shape, template string) {
	g.str("general.architecture", "llama")
	g.str("general.name", "correx test model")
	g.u32("llama.context_length", ContextSize)
	g.u32("llama.embedding_length", s.embedding)
	g.u32("llama.block_count", s.layers)
	g.u32("llama.feed_forward_length", s.feedForward)
	g.u32("llama.attention.head_count", s.heads)
	g.u32("llama.attention.key_length", s.head)
	g.u32("llama.attention.value_length", s.head)
	g.u32("llama.rope.dimension_count", s.head)
	g.f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
	g.str("tokenizer.ggml.model", "llama")
	g.strs("tokenizer.ggml.tokens", v.tokens)
	g.f32s("tokenizer.ggml.scores", make([]float32, len(v.tokens)))
	g.i32s("tokenizer.ggml.token_type", v.types)
	g.u32("tokenizer.ggml.bos_token_id", v.ids[bos])
	g.u32("tokenizer.ggml.eos_token_id", v.ids[end])
	g.boolean("tokenizer.ggml.add_bos_token", false)
	g.boolean("tokenizer.ggml.add_space_prefix", false)
	g.str("tokenizer.chat_template", template)
}

// layer adds the tensors of one layer; weights gives the data of a matrix by
// its size, nil for zeros.
func (g *gguf) layer(n int, s shape, weights func(size int) []float32) {
	name := func(part string) string { return fmt.Sprintf("blk.%d.%s.weight", n, part) }
	matrix := func(part string, in, out int) { g.tensor(name(part), weights(in*out), in, out) }
	attention := s.heads * s.head
	g.tensor(name("attn_norm"), ones(s.embedding), s.embedding)
	matrix("attn_q", s.embedding, attention)
	matrix("attn_k", s.embedding, attention)
	matrix("attn_v", s.embedding, attention)
	matrix("attn_output", attention, s.embedding)
	g.tensor(name("ffn_norm"), ones(s.embedding), s.embedding)
	matrix("ffn_gate", s.embedding, s.feedForward)
	matrix("ffn_up", s.embedding, s.feedForward)
	matrix("ffn_down", s.feedForward, s.embedding)
}

func ones(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = 1
	}
	return v
}
