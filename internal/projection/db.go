package projection

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver

	"correx/pkg/audit"
)

// SchemaVersion changes with schema.sql and with what is written into it, and each
// change needs a step in [steps], which takes older databases along.
const SchemaVersion = 4

//go:embed schema.sql
var schemaSQL string

func schemaName() string { return fmt.Sprintf("version %d, search %s", SchemaVersion, hasFTS) }

// A DB is one database file. Its [Writer] is for one goroutine; reads may come
// from any, and never wait for the writer.
type DB struct {
	path  string
	setup *sql.DB // one connection, for the schema and for maintenance
	read  *sql.DB
	at    Checkpoint
	id    Identity

	migrated int // the version it had, if it was another
}

// A Checkpoint is how far the log has been applied, and what stands there.
type Checkpoint struct {
	Seq   uint64
	Hash  audit.Hash  // of the record at Seq
	State audit.State // of all records up to Seq
}

// clone shares nothing with c.
func (c Checkpoint) clone() Checkpoint {
	c.State = c.State.Clone()
	return c
}

// Open opens or makes the database at path for the stream that id names. One of an
// older version of the schema is migrated. A database of another stream, of a newer
// schema or of one that is too old is an [AlarmError]; whether the log still has the
// record at the checkpoint is for [Projector.Run] to see. The caller holds the file's
// [Lock].
func Open(ctx context.Context, path string, id Identity) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db, err := connect(ctx, path)
	if err != nil {
		return nil, damaged(fmt.Errorf("open database %s: %w", path, err))
	}
	if err := db.prepare(ctx, id); err != nil {
		return nil, damaged(errors.Join(err, db.Close()))
	}
	return db, nil
}

// OpenReadOnly opens the database at path for queries and dumps, also while a
// projector writes it.
func OpenReadOnly(ctx context.Context, path string) (*DB, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open database: %s does not exist; start a projector, or name the file with --db", path)
	}
	db := &DB{path: path}
	var err error
	if db.read, err = sql.Open("sqlite3", dsn(path, "_query_only=1&mode=rw")); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	version, err := db.load(ctx, db.read)
	if err == nil && version < SchemaVersion {
		err = olderSchema(path, version)
	}
	if err != nil {
		return nil, damaged(errors.Join(fmt.Errorf("read database %s: %w", path, err), db.Close()))
	}
	return db, nil
}

// connect opens the file for setting it up and for reading.
func connect(ctx context.Context, path string) (*DB, error) {
	db := &DB{path: path}
	var err error
	if db.setup, err = sql.Open("sqlite3", dsn(path, writing)); err != nil {
		return nil, err
	}
	db.setup.SetMaxOpenConns(1)
	if err := db.setup.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if db.read, err = sql.Open("sqlite3", dsn(path, "_query_only=1&mode=rw")); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.read.SetMaxOpenConns(4)
	db.read.SetMaxIdleConns(4)
	return db, nil
}

// writing is how a connection is opened that writes.
//
// WAL lets any program read while the projector writes. synchronous=NORMAL
// syncs at WAL checkpoints only: a power cut may take the last transactions
// back, whole ones, and the log has them all.
const writing = "_journal_mode=WAL&_synchronous=NORMAL&_txlock=immediate"

func dsn(path, options string) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?_busy_timeout=5000&" + options
}

// prepare makes the schema in a new file, and holds an old one against id.
func (db *DB) prepare(ctx context.Context, id Identity) error {
	var tables int
	err := db.setup.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'meta'").Scan(&tables)
	if err != nil {
		return fmt.Errorf("read database %s: %w", db.path, err)
	}
	if tables == 0 {
		return db.create(ctx, id)
	}
	version, err := db.load(ctx, db.setup)
	if err != nil {
		return fmt.Errorf("read database %s: %w", db.path, err)
	}
	if db.id.Stream != id.Stream || !db.id.Created.Equal(id.Created) {
		return foreignStream(db.id, id)
	}
	if version < SchemaVersion {
		if err := db.migrate(ctx, version); err != nil {
			return err
		}
	}
	if _, err := db.setup.ExecContext(ctx, indexSQL); err != nil {
		return fmt.Errorf("index database %s: %w", db.path, err)
	}
	return nil
}

// create makes the schema in one transaction: a kill leaves all of it or none.
func (db *DB) create(ctx context.Context, id Identity) error {
	tx, err := db.setup.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("make database %s: %w", db.path, err)
	}
	defer tx.Rollback() // after a commit it does nothing
	if _, err := tx.ExecContext(ctx, schemaSQL+searchTable+indexSQL); err != nil {
		return fmt.Errorf("make database %s: %w", db.path, err)
	}
	at := Checkpoint{State: audit.Begin(audit.Identity(id))}
	for key, value := range map[string]string{
		"schema": schemaName(), "stream": id.Stream, "stream_created": stamp(id.Created),
		"checkpoint": "0", "checkpoint_sha256": at.Hash.String(),
		"chain_sha256": at.State.Chain.String(), "tree_peaks": at.State.Tree.Peaks(),
	} {
		if _, err := tx.ExecContext(ctx, "INSERT INTO meta VALUES (?, ?)", key, value); err != nil {
			return fmt.Errorf("make database %s: %w", db.path, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("make database %s: %w", db.path, err)
	}
	db.id, db.at = id, at
	return nil
}

// A queryer is a connection, a pool or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// load reads meta, and returns the version of the schema.
func (db *DB) load(ctx context.Context, q queryer) (version int, err error) {
	meta, err := readMeta(ctx, q)
	if err != nil {
		return 0, err
	}
	if version, err = schemaOf(db.path, meta["schema"]); err != nil {
		return version, err
	}
	db.id.Stream = meta["stream"]
	if db.id.Created, err = time.Parse(time.RFC3339Nano, meta["stream_created"]); err != nil {
		return version, &AlarmError{ErrDamaged, fmt.Sprintf("meta: stream_created: %v", err), rebuild}
	}
	if db.at, err = checkpointOf(meta); err != nil {
		return version, &AlarmError{ErrDamaged, err.Error(), rebuild}
	}
	return version, nil
}

func readMeta(ctx context.Context, q queryer) (map[string]string, error) {
	rows, err := q.QueryContext(ctx, "SELECT key, value FROM meta")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	meta := map[string]string{}
	for rows.Next() {
		var k, v string
		if err := rows.Scan(&k, &v); err != nil {
			return nil, err
		}
		meta[k] = v
	}
	return meta, rows.Err()
}

func checkpointOf(meta map[string]string) (c Checkpoint, err error) {
	if c.Seq, err = strconv.ParseUint(meta["checkpoint"], 10, 63); err != nil {
		return c, fmt.Errorf("meta: checkpoint: %w", err)
	}
	if c.Hash, err = audit.ParseHash(meta["checkpoint_sha256"]); err != nil {
		return c, fmt.Errorf("meta: checkpoint_sha256: %w", err)
	}
	if c.State.Chain, err = audit.ParseHash(meta["chain_sha256"]); err != nil {
		return c, fmt.Errorf("meta: chain_sha256: %w", err)
	}
	if c.State.Tree, err = audit.ParseTree(c.Seq, meta["tree_peaks"]); err != nil {
		return c, fmt.Errorf("meta: tree_peaks: %w", err)
	}
	return c, nil
}

// Identity names the stream that the database was made from.
func (db *DB) Identity() Identity { return db.id }

// Checkpoint reads how far the database is, as any reader sees it.
func (db *DB) Checkpoint(ctx context.Context) (Checkpoint, error) {
	meta, err := readMeta(ctx, db.read)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint of %s: %w", db.path, err)
	}
	return checkpointOf(meta)
}

// Close closes the file; the last to close it takes the WAL in.
func (db *DB) Close() error {
	var errs []error
	if db.read != nil {
		errs = append(errs, db.read.Close())
	}
	if db.setup != nil {
		errs = append(errs, db.setup.Close())
	}
	return errors.Join(errs...)
}

// DefaultPath is where the database is in a state directory.
func DefaultPath(stateDir string) string { return filepath.Join(stateDir, "correx.db") }
