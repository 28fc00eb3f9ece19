package projection

import (
	"errors"
	"fmt"
	"strconv"

	"correx/pkg/audit"
	"correx/pkg/events"
)

// A Writer applies records to a database, in the order of the log, one
// transaction a batch. It is for one goroutine. After an error it is of no more
// use, and the database is as the last [Writer.Commit] left it.
type Writer struct {
	// Alarm, if it is set, is told of every record that does not hold.
	Alarm func(r events.Record, fault error)

	db     *DB
	conn   *connection
	folds  folds
	hasher audit.Hasher // for Apply
	at     Checkpoint   // of what was applied, committed or not
	begun  bool
	bytes  int // bodies applied since the last commit
	count  int // records applied since the last commit

	// Tee, if it is set, sees every statement, for whoever measures. The arguments
	// last until it returns.
	Tee func(query string, args []any)
}

// Writer returns the database's writer; there may be one at a time.
func (db *DB) Writer() (*Writer, error) { return db.writer(writing) }

func (db *DB) writer(options string) (*Writer, error) {
	conn, err := openConnection(dsn(db.path, options))
	if err != nil {
		return nil, damaged(fmt.Errorf("open database %s to write: %w", db.path, err))
	}
	w := &Writer{db: db, conn: conn, at: db.at.clone()}
	w.folds = newFolds(w)
	if w.at.Seq == 0 {
		w.folds.past = newPast()
	}
	return w, nil
}

// At is the sequence of the last record that was applied.
func (w *Writer) At() uint64 { return w.at.Seq }

// Apply adds the record that follows the last one. A gap is an [AlarmError].
func (w *Writer) Apply(r events.Record) error { return w.take(receive(&w.hasher, r)) }

func (w *Writer) take(r incoming) error {
	if r.Seq != w.at.Seq+1 {
		return gap(w.at.Seq, r.Seq)
	}
	if err := w.apply(r); err != nil {
		return damaged(fmt.Errorf("apply record %d (%s) to %s: %w", r.Seq, r.Subject, w.db.path, err))
	}
	w.at.Seq, w.at.Hash = r.Seq, r.hash
	w.at.State.Add(r.hash)
	w.bytes += len(r.Data)
	w.count++
	return nil
}

func (w *Writer) apply(r incoming) error {
	if !w.begun {
		if err := w.exec("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		w.begun = true
	}
	fact, fault, err := w.folds.step(r.Record)
	if err != nil {
		return err
	}
	if err := w.keep(r, fact != nil, fault); err != nil {
		return err
	}
	if fault != nil && w.Alarm != nil {
		w.Alarm(r.Record, fault)
	}
	if fact == nil {
		return nil
	}
	r.Fact = fact
	return w.project(r.Record)
}

// keep adds the record as it is, whether it holds or not. A subject or body that
// is no text becomes a BLOB.
func (w *Writer) keep(r incoming, holds bool, fault error) error {
	_, name, route, err := events.ParseSubject(r.Subject)
	if err != nil {
		name, route = "", ""
	}
	var reason any
	if fault != nil {
		reason = fault.Error()
	}
	a := r.Aggregate
	return w.exec(`INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
		r.Seq, stamp(r.Time), text([]byte(r.Subject)), a.Session, a.Kind, a.ID, name, route,
		r.Header.Get(events.HeaderType), r.headers, text(r.Data), r.content.String(), holds, reason)
}

// Commit ends the batch, with the checkpoint in it.
func (w *Writer) Commit() error {
	if !w.begun {
		return nil
	}
	const set = "UPDATE meta SET value = ? WHERE key = ?"
	err := errors.Join(
		w.exec(set, strconv.FormatUint(w.at.Seq, 10), "checkpoint"),
		w.exec(set, w.at.Hash.String(), "checkpoint_sha256"),
		w.exec(set, w.at.State.Chain.String(), "chain_sha256"),
		w.exec(set, w.at.State.Tree.Peaks(), "tree_peaks"))
	if err == nil {
		err = w.exec("COMMIT")
	}
	if err != nil {
		return fmt.Errorf("commit up to sequence %d to %s: %w", w.at.Seq, w.db.path, err)
	}
	w.begun, w.bytes, w.count = false, 0, 0
	w.db.at = w.at.clone()
	return nil
}

// Close gives up what was not committed.
func (w *Writer) Close() error {
	var errs []error
	if w.begun {
		errs = append(errs, w.exec("ROLLBACK"))
	}
	return errors.Join(append(errs, w.conn.close())...)
}

// exec runs a statement, prepared once.
func (w *Writer) exec(query string, args ...any) error {
	if w.Tee != nil {
		w.Tee(query, args)
	}
	return w.conn.exec(query, args)
}
