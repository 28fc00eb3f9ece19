package projection

import (
	"bufio"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
)

// A Difference is the first line in which two dumps are not alike. A line that one
// of them has not is empty.
type Difference struct {
	Table string `json:"table"`
	Have  string `json:"have"` // what the database has
	Want  string `json:"want"` // what the log makes
}

// Verify projects the log anew into dir, up to where the database at path is, and
// returns the first row of any table that is another, or nil. The caller holds the
// database's [Lock], and has compared its records.
func Verify(ctx context.Context, path, dir string, id Identity, log Log, progress func(done, last uint64)) (*Difference, error) {
	db, err := OpenReadOnly(ctx, path)
	if err != nil {
		return nil, err
	}
	at, err := db.Checkpoint(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	fresh := filepath.Join(dir, "fresh.db")
	if err := projectThrough(ctx, fresh, id, log, at.Seq, progress); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	other, err := OpenReadOnly(ctx, fresh)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	d, err := differ(ctx, db, other)
	return d, errors.Join(err, db.Close(), other.Close())
}

// differ reads the dumps of both side by side.
func differ(ctx context.Context, db, fresh *DB) (*Difference, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	have, want := dumped(ctx, db), dumped(ctx, fresh)
	defer have.close()
	defer want.close()
	table := ""
	for {
		h, more, err := have.next()
		w, other, wrong := want.next()
		if err := errors.Join(err, wrong); err != nil {
			return nil, err
		}
		if !more && !other {
			return nil, nil
		}
		if name, ok := strings.CutPrefix(w, "# "); ok {
			table = name
		}
		if h != w {
			return &Difference{table, h, w}, nil
		}
	}
}

// A dumpReader is a dump line by line.
type dumpReader struct {
	in  *bufio.Reader
	end *io.PipeReader
}

func dumped(ctx context.Context, db *DB) *dumpReader {
	r, w := io.Pipe()
	go func() { w.CloseWithError(db.Dump(ctx, w)) }()
	return &dumpReader{bufio.NewReader(r), r}
}

func (d *dumpReader) close() { _ = d.end.Close() } // ends the dump, too

func (d *dumpReader) next() (line string, more bool, err error) {
	line, err = d.in.ReadString('\n')
	if errors.Is(err, io.EOF) {
		return line, line != "", nil
	}
	return strings.TrimSuffix(line, "\n"), true, err
}
