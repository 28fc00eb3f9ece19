package session

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// An index finds samples by the words of their tasks.
type index struct {
	all  []sample
	seen []map[string]float64 // weights of the words, of length 1
	rare map[string]float64   // by word: how few have it
	// verbs are the words that samples of tools begin with, and no question does;
	// true: each of them names a file.
	verbs map[string]bool
	back  bool // "it" may be a file that was named before
}

func newIndex(all []sample) index {
	x := index{all: all, rare: map[string]float64{}, verbs: map[string]bool{}}
	for _, s := range all {
		if v := verbOf(s.Task); s.tool != "" && !asks[v] {
			before, known := x.verbs[v]
			x.verbs[v] = (before || !known) && len(pathsIn(s.Task)) > 0
		}
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
	for _, w := range slices.Sorted(maps.Keys(out)) { // sums depend on their order
		n := out[w]
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

// namesProgram is what it counts that a part names the program of a sample.
const namesProgram = 0.3

// best returns the sample most like a part that ok takes and that is not among
// those that are had. One is about files if the other is.
func (x index) best(part string, had []sample, ok func(sample) bool) (sample, bool) {
	of, most, at := x.weigh(part), leastLike, -1
	if of[aFile] > 0 {
		most = leastLikeFile
	}
	order := slices.Sorted(maps.Keys(of))
	for k, s := range x.all {
		aboutFiles := (of[aFile] > 0) == (x.seen[k][aFile] > 0) || x.back && refersBack(part)
		if !aboutFiles || slices.ContainsFunc(had, func(h sample) bool { return h.Task == s.Task }) || !ok(s) {
			continue
		}
		like := 0.0
		for _, w := range order {
			like += of[w] * x.seen[k][w]
		}
		if program := s.does().program(); program != "" && of[stem(program)] > 0 {
			like += namesProgram
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
