//go:build sqlite_fts5 || fts5

package projection

import "strings"

// searchTable is full-text search over tasks, messages and outputs.
const searchTable = `CREATE VIRTUAL TABLE search USING fts5(
  text, session UNINDEXED, source UNINDEXED, id UNINDEXED);`

const searchMatch = `search MATCH ?`

// searchText is what a person searches for as FTS5 has it: every word of it, in
// any order; a word that ends with * stands for all that begin so.
func searchText(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		stem, prefix := strings.CutSuffix(w, "*")
		words[i] = `"` + strings.ReplaceAll(stem, `"`, `""`) + `"`
		if prefix {
			words[i] += "*"
		}
	}
	return strings.Join(words, " ")
}

const hasFTS = "fts5"
