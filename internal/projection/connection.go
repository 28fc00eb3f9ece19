package projection

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/mattn/go-sqlite3"
)

// A connection is SQLite without database/sql around it, which costs a tenth of
// the writer's time. It is for one goroutine. Statements are prepared once. It
// takes no contexts: a batch is a matter of milliseconds, and never left half
// done for a signal.
type connection struct {
	conn  driver.Conn
	stmts map[string]*sqlite3.SQLiteStmt
	args  []driver.NamedValue // used again by every statement
}

// pragmas: 64 MiB of pages in memory, and a WAL of up to 16 MiB before it is
// taken in, which is when the file is synced.
var pragmas = []string{"PRAGMA cache_size = -65536", "PRAGMA wal_autocheckpoint = 4000", "PRAGMA temp_store = MEMORY"}

func openConnection(dsn string) (*connection, error) {
	conn, err := new(sqlite3.SQLiteDriver).Open(dsn)
	if err != nil {
		return nil, err
	}
	c := &connection{conn: conn, stmts: map[string]*sqlite3.SQLiteStmt{}}
	for _, pragma := range pragmas {
		if err := c.exec(pragma, nil); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *connection) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.conn.Close())...)
}

// prepare returns a statement and its arguments, which last until the next call.
func (c *connection) prepare(query string, args []any) (*sqlite3.SQLiteStmt, []driver.NamedValue, error) {
	s := c.stmts[query]
	if s == nil {
		p, err := c.conn.Prepare(query)
		if err != nil {
			return nil, nil, fmt.Errorf("prepare %q: %w", query, err)
		}
		s = p.(*sqlite3.SQLiteStmt)
		c.stmts[query] = s
	}
	c.args = c.args[:0]
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, nil, fmt.Errorf("argument %d of %q: %w", i+1, query, err)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s, c.args, nil
}

func (c *connection) exec(query string, args []any) error {
	s, values, err := c.prepare(query, args)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(context.Background(), values)
	return err
}

// each calls fn with every row of a query. What a row holds is gone afterwards.
func (c *connection) each(fn func(row []driver.Value) error, query string, args ...any) error {
	s, values, err := c.prepare(query, args)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), values)
	if err != nil {
		return err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for {
		err := rows.Next(row)
		if err == nil {
			err = fn(row)
		}
		if err == io.EOF {
			return rows.Close()
		}
		if err != nil {
			return errors.Join(err, rows.Close())
		}
	}
}

// text reads the one text that a query selects; found is false when there is
// none.
func (c *connection) text(query string, args ...any) (text string, found bool, err error) {
	err = c.each(func(row []driver.Value) error {
		text, found = row[0].(string)
		return nil
	}, query, args...)
	return text, found, err
}
