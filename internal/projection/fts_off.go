//go:build !sqlite_fts5 && !fts5

package projection

// searchTable stands in for full-text search in a build without FTS5: the same
// columns, searched for a part of the text.
const searchTable = `CREATE TABLE search (
  text TEXT NOT NULL, session TEXT NOT NULL, source TEXT NOT NULL, id TEXT NOT NULL);`

const searchMatch = `instr(lower(text), lower(?)) > 0`

func searchText(text string) string { return text }

const hasFTS = "none"
