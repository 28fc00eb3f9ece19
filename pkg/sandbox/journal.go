package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// A Journal remembers on disk what running invocations change, so that a
// changed file can be made what it was, also after a crash. All that run at once
// share an fsync.
//
// A worker has one journal, and a journal one process. Its methods may be called
// from several goroutines; those about one key by one at a time.
type Journal struct {
	dir     string // journal/
	backups string
	fault   func(point string)
	logger  *slog.Logger
	lock    *os.File

	mu      sync.Mutex
	synced  *sync.Cond // something became durable, or broke
	file    *os.File
	size    int64 // of the file
	onDisk  int64 // of it
	count   uint64
	durable uint64 // of count
	syncing bool
	broken  error // what ended all writing
	nextID  uint64
	entries map[Key]*entry
}

// An entry is one invocation, in memory.
type entry struct {
	Entry
	id      uint64
	files   []Change
	rolled  bool
	frames  []record // all its records, for a new file
	settled bool     // its rollback is over
}

// JournalOptions are what a journal can do without.
type JournalOptions struct {
	Logger *slog.Logger
	// Fault is called at each point of [FaultPoints], for tests that end the
	// process there.
	Fault func(point string)
}

// FaultPoints are the points at which [JournalOptions.Fault] is called: before a
// record is written, and after it is durable where somebody waits for that.
var FaultPoints = []string{
	"begin", "begin.durable", "announced", "announced.durable", "staged", "staged.durable", "applied", "applied.written",
	"result", "result.durable", "rolling", "rolling.durable", "rolled", "rolled.durable", "clear", "clear.written",
}

// compactAt is how large the file may grow before it is written anew.
const compactAt = 8 << 20

// OpenJournal opens the journal of the worker whose directory is dir, making it
// if need be: dir/journal and dir/backups. It returns what a former process left
// undone, oldest first; these are entries of the journal still.
func OpenJournal(dir string, o JournalOptions) (*Journal, []Entry, error) {
	j := &Journal{
		dir: filepath.Join(dir, "journal"), backups: filepath.Join(dir, "backups"),
		fault: o.Fault, logger: o.Logger, entries: make(map[Key]*entry),
	}
	if j.fault == nil {
		j.fault = func(string) {}
	}
	if j.logger == nil {
		j.logger = slog.New(slog.DiscardHandler)
	}
	j.synced = sync.NewCond(&j.mu)
	if err := j.open(); err != nil {
		j.release()
		return nil, nil, fmt.Errorf("open journal %s: %w", j.dir, err)
	}
	return j, j.pending(), nil
}

// Close releases the journal. What is in it stays for the next process.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.syncing {
		j.synced.Wait()
	}
	if j.broken == nil {
		j.broken = errors.New("the journal is closed")
	}
	return j.release()
}

func (j *Journal) release() error {
	var faults []error
	for _, f := range []**os.File{&j.file, &j.lock} {
		if *f != nil {
			faults = append(faults, (*f).Close())
			*f = nil
		}
	}
	return errors.Join(faults...)
}

// Begin records, durably, what an invocation is about to change. Nothing may be
// changed before it returns nil. unlisted says that it may change what nobody
// can list, as a shell command does.
func (j *Journal) Begin(key Key, tool string, files []Change, unlisted bool) error {
	if err := key.check(); err != nil {
		return fmt.Errorf("begin %s: %w", key, err)
	}
	e := &entry{Entry: Entry{Key: key, Tool: tool, State: Running, Unlisted: unlisted}, files: files}
	j.mu.Lock()
	if j.entries[key] != nil {
		j.mu.Unlock()
		return fmt.Errorf("begin %s: it has begun already", key)
	}
	e.id = j.nextID
	j.nextID++
	j.entries[key] = e
	j.mu.Unlock()

	err := j.backUp(e)
	if err == nil {
		err = j.append(e, record{Kind: beginRecord, Key: &key, Tool: tool, Files: e.files, Unlisted: unlisted}, true)
	}
	if err != nil {
		j.mu.Lock()
		delete(j.entries, key)
		j.mu.Unlock()
		j.dropBackups(e)
		return fmt.Errorf("begin %s: %w", key, err)
	}
	return nil
}

// announce records, durably, what an invocation is about to change that may have
// begun already, without files. Nothing may be changed before it returns nil.
func (j *Journal) announce(key Key, tool string, files []Change) error {
	e := j.find(key)
	if e == nil {
		return j.Begin(key, tool, files, false)
	}
	if len(e.files) > 0 || e.State != Running {
		return fmt.Errorf("announce changes of %s: it has announced some already, or is over", key)
	}
	backed := &entry{Entry: e.Entry, files: files}
	err := j.backUp(backed)
	if err == nil {
		err = j.append(e, record{Kind: announcedRecord, Files: backed.files}, true)
	}
	if err != nil {
		j.dropBackups(backed)
		return fmt.Errorf("announce changes of %s: %w", key, err)
	}
	return nil
}

// Result records, durably, the end of an invocation as opaque bytes. From here
// on it stands.
func (j *Journal) Result(key Key, result []byte) error {
	e := j.find(key)
	if e == nil {
		return nil
	}
	if err := j.append(e, record{Kind: resultRecord, Result: result}, true); err != nil {
		return fmt.Errorf("record result of %s: %w", key, err)
	}
	return nil
}

// Clear forgets an invocation and removes its backups, except those that a
// rollback had to keep. It does not wait for the disk: an entry that comes back
// after a crash is one whose end is published already.
func (j *Journal) Clear(key Key) error {
	e := j.find(key)
	if e == nil {
		return nil
	}
	if err := j.append(e, record{Kind: clearRecord}, false); err != nil {
		return fmt.Errorf("clear %s: %w", key, err)
	}
	j.mu.Lock()
	delete(j.entries, key)
	idle := len(j.entries) == 0
	large := j.size > compactAt
	j.mu.Unlock()
	j.dropBackups(e)
	if large {
		return j.compact(idle)
	}
	return nil
}

// Has reports whether there is an entry for key.
func (j *Journal) Has(key Key) bool { return j.find(key) != nil }

func (j *Journal) find(key Key) *entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.entries[key]
}
