//go:build sqlite_fts5 || fts5

package projection

// searchTable is full-text search over tasks, messages and outputs.
const searchTable = `CREATE VIRTUAL TABLE search USING fts5(
  text, session UNINDEXED, source UNINDEXED, id UNINDEXED);`

const searchMatch4 = `search MATCH ?4`

const hasFTS = "fts5"
