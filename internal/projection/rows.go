package projection

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

// A column is a column of a result, with the type it was declared with.
type column struct{ name, declared string }

// A cell is a value as SQLite has it: nil, int64, float64, string, []byte or bool.
type cell = any

// eachRow calls fn with every row of a query.
func eachRow(ctx context.Context, q queryer, fn func(cols []column, row []cell) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	cols, err := columnsOf(rows)
	if err != nil {
		return err
	}
	row, dest := make([]cell, len(cols)), make([]any, len(cols))
	for i := range row {
		dest[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		if err := fn(cols, row); err != nil {
			return err
		}
	}
	return rows.Err()
}

func columnsOf(rows *sql.Rows) ([]column, error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	cols := make([]column, len(types))
	for i, t := range types {
		cols[i] = column{t.Name(), t.DatabaseTypeName()}
		if n := cols[i].name; n == "available" || n == "differs" { // computed, so SQLite knows no type
			cols[i].declared = "BOOLEAN"
		}
	}
	return cols, nil
}

// object is a row as a JSON object, columns in their order. JSONTEXT stands in
// it as JSON, a BLOB as {"base64": …}.
func object(cols []column, row []cell) ([]byte, error) {
	b := []byte{'{'}
	for i, c := range cols {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(quote(b, c.name), ':')
		var err error
		if b, err = value(b, c, row[i]); err != nil {
			return nil, fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return append(b, '}'), nil
}

func value(b []byte, c column, v cell) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		if c.declared == "BOOLEAN" {
			return strconv.AppendBool(b, v != 0), nil
		}
		return strconv.AppendInt(b, v, 10), nil
	case float64:
		return strconv.AppendFloat(b, v, 'g', -1, 64), nil
	case string:
		if c.declared == "JSONTEXT" && json.Valid([]byte(v)) {
			return append(b, v...), nil
		}
		return quote(b, v), nil
	case []byte:
		b = append(b, `{"base64":`...)
		return append(quote(b, base64.StdEncoding.EncodeToString(v)), '}'), nil
	}
	return nil, fmt.Errorf("unexpected %T", v)
}

// quote appends s as a JSON string.
func quote(b []byte, s string) []byte {
	if plain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return append(b, `""`...) // a string always encodes
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// plain reports whether s is ASCII that JSON need not escape.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
