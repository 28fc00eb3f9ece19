package projection

import (
	"errors"
	"slices"
)

// errFull stops a query whose page is full.
var errFull = errors.New("the page is full")

// A page takes rows until one of its limits is reached.
type page struct {
	most, limit int
	size        int
	answer      Answer
}

// add takes a row, or ends the page.
func (p *page) add(cols []column, row []cell) error {
	if len(p.answer.Items) == p.limit {
		p.answer.More = true
		return errFull
	}
	item, err := object(cols, row)
	if err != nil {
		return err
	}
	if len(item) > p.most {
		if item, err = clipped(cols, row, p.most); err != nil {
			return err
		}
	}
	if p.size+len(item) > p.most {
		p.answer.More = true
		return errFull
	}
	p.size += len(item) + 1
	p.answer.Items = append(p.answer.Items, item)
	p.answer.Next = cursor(cols, row)
	return nil
}

// cursor is where the next page goes on behind row.
func cursor(cols []column, row []cell) uint64 {
	for _, name := range []string{"number", "seq"} {
		for i, c := range cols {
			if n, ok := row[i].(int64); ok && c.name == name {
				return uint64(n)
			}
		}
	}
	return 0
}

// clipped is a row without its largest texts, so that it takes at most most
// bytes. Omitted names them; the database has them.
func clipped(cols []column, row []cell, most int) ([]byte, error) {
	cols, row = slices.Clone(cols), slices.Clone(row)
	var omitted []string
	for {
		item, err := object(append(cols, column{"omitted", "JSONTEXT"}), append(row, list(omitted)))
		if err != nil || len(item) <= most {
			return item, err
		}
		k := largest(row)
		if k < 0 {
			return nil, errors.New("a row is too large for an answer; read the database itself")
		}
		omitted = append(omitted, cols[k].name)
		row[k] = nil
	}
}

// largest is the index of the longest text, or -1.
func largest(row []cell) int {
	k, size := -1, 0
	for i, v := range row {
		n := 0
		switch v := v.(type) {
		case string:
			n = len(v)
		case []byte:
			n = len(v)
		}
		if n > size {
			k, size = i, n
		}
	}
	return k
}
