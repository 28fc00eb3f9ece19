package projection

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"strings"
)

// Dump writes every column of every table as text, one row a line, ordered by
// primary key: equal for two databases that were made from the same log,
// whatever batches, restarts and rebuilds lay between. It reads one snapshot,
// also while a projector writes.
func (db *DB) Dump(ctx context.Context, out io.Writer) error { return db.dump(ctx, out, textDump) }

// DumpJSON is [DB.Dump] with a JSON object a line: {"table": …, "row": …}.
func (db *DB) DumpJSON(ctx context.Context, out io.Writer) error { return db.dump(ctx, out, jsonDump) }

// A dumpFormat is how tables and rows are written.
type dumpFormat struct{ table, row string }

var (
	textDump = dumpFormat{"# %s\n", "%[2]s\n"}
	jsonDump = dumpFormat{"", "{\"table\":%[1]q,\"row\":%[2]s}\n"}
)

func (db *DB) dump(ctx context.Context, out io.Writer, f dumpFormat) error {
	tx, err := db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("dump %s: %w", db.path, err)
	}
	defer tx.Rollback() // it only reads
	tables, err := tablesOf(ctx, tx)
	if err != nil {
		return fmt.Errorf("dump %s: %w", db.path, err)
	}
	w := bufio.NewWriter(out)
	for _, t := range tables {
		if err := f.dump(ctx, tx, w, t); err != nil {
			return fmt.Errorf("dump %s: table %s: %w", db.path, t, err)
		}
	}
	return w.Flush()
}

// tablesOf names all tables but SQLite's own and the innards of full-text search.
func tablesOf(ctx context.Context, q queryer) ([]string, error) {
	var names []string
	err := eachRow(ctx, q, func(_ []column, row []cell) error {
		names = append(names, row[0].(string))
		return nil
	}, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')
		AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`)
	return names, err
}

func (f dumpFormat) dump(ctx context.Context, q queryer, w io.Writer, table string) error {
	query, err := dumpQuery(ctx, q, table)
	if err != nil {
		return err
	}
	if f.table != "" {
		if _, err := fmt.Fprintf(w, f.table, table); err != nil {
			return err
		}
	}
	return eachRow(ctx, q, func(cols []column, row []cell) error {
		line, err := object(cols, row)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, f.row, table, line)
		return err
	}, query)
}

// dumpQuery selects all of a table by its key; the search table has none, its
// rows are numbered by the records' sequences.
func dumpQuery(ctx context.Context, q queryer, table string) (string, error) {
	var keys []string
	err := eachRow(ctx, q, func(_ []column, row []cell) error {
		keys = append(keys, `"`+row[0].(string)+`"`)
		return nil
	}, `SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk`, table)
	if err != nil {
		return "", err
	}
	if len(keys) == 0 {
		return fmt.Sprintf(`SELECT rowid AS seq, * FROM %q ORDER BY rowid`, table), nil
	}
	return fmt.Sprintf(`SELECT * FROM %q ORDER BY %s`, table, strings.Join(keys, ", ")), nil
}
