package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
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
	"begin", "begin.durable", "staged", "staged.durable", "applied", "applied.written",
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

func (j *Journal) open() error {
	for _, d := range []string{j.dir, j.backups, filepath.Join(j.backups, keptDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if err := j.takeLock(); err != nil {
		return err
	}
	data, err := os.ReadFile(j.path())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	sound, err := scan(data, j.replay)
	if err != nil {
		return fmt.Errorf("read %s: %w; move it away to go on without what it remembers", j.path(), err)
	}
	if torn := int64(len(data)) - sound; torn > 0 {
		j.logger.Warn("cut a torn record off the journal", "file", j.path(), "bytes", torn)
	}
	if err := j.rewrite(); err != nil {
		return err
	}
	return j.sweepBackups()
}

func (j *Journal) path() string { return filepath.Join(j.dir, "log") }

func (j *Journal) takeLock() error {
	f, err := os.OpenFile(filepath.Join(j.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return fmt.Errorf("another process uses it: %w", err)
	}
	j.lock = f
	return nil
}

// replay takes one record of a former process.
func (j *Journal) replay(r record) error {
	j.nextID = max(j.nextID, r.ID+1)
	if r.Kind == beginRecord {
		if r.Key == nil {
			return errors.New("begin without a key")
		}
		j.entries[*r.Key] = &entry{
			Entry: Entry{Key: *r.Key, Tool: r.Tool, State: Running, Unlisted: r.Unlisted},
			id:    r.ID, files: r.Files, frames: []record{r},
		}
		return nil
	}
	for key, e := range j.entries {
		if e.id == r.ID {
			if r.Kind == clearRecord {
				delete(j.entries, key)
				return nil
			}
			return e.apply(r)
		}
	}
	return fmt.Errorf("%s of an entry that never began", r.Kind)
}

// apply takes the entry one record further.
func (e *entry) apply(r record) error {
	switch r.Kind {
	case stagedRecord, appliedRecord:
		if r.File < 0 || r.File >= len(e.files) || r.After == nil {
			return fmt.Errorf("%s of file %d, and there are %d", r.Kind, r.File, len(e.files))
		}
		if r.Kind == stagedRecord {
			e.files[r.File].Staged, e.files[r.File].Applied = r.After, nil
		} else {
			e.files[r.File].Applied = r.After
		}
	case resultRecord:
		e.State, e.Result = Result, r.Result
	case rollingRecord:
		e.rolled = true
		if e.State == Running {
			e.State = Rolling
		}
	case rolledRecord:
		e.settled, e.Files = true, r.Outcome
	default:
		return fmt.Errorf("kind %q is unknown", r.Kind)
	}
	e.frames = append(e.frames, r)
	return nil
}

func (j *Journal) pending() []Entry {
	var all []*entry
	for _, e := range j.entries {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int { return int(a.id) - int(b.id) })
	out := make([]Entry, len(all))
	for i, e := range all {
		out[i] = e.Entry
	}
	return out
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

// recorder tells the journal of the changes of one entry.
type recorder struct {
	journal *Journal
	entry   *entry
}

var _ workspace.Recorder = recorder{}

func (r recorder) index(path string) (int, error) {
	for i, f := range r.entry.files {
		if f.Path() == path {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s was not announced as affected, so it is not backed up and must not be changed", path)
}

func (r recorder) Staged(path string, before, after workspace.State) error {
	i, err := r.index(path)
	if err != nil {
		return err
	}
	if !before.Same(r.entry.files[i].Before) {
		return fmt.Errorf("%s %w, after it was backed up", path, workspace.ErrChanged)
	}
	return r.journal.append(r.entry, record{Kind: stagedRecord, File: i, After: &after}, true)
}

func (r recorder) Applied(path string, after workspace.State) error {
	i, err := r.index(path)
	if err != nil {
		return err
	}
	return r.journal.append(r.entry, record{Kind: appliedRecord, File: i, After: &after}, false)
}

func (r recorder) Temp(path string) string {
	if i, err := r.index(path); err == nil {
		return r.entry.files[i].Temp
	}
	return workspace.TempName()
}

// EffectsOf sums up what a rollback came to.
func EffectsOf(e Entry, files []events.RecoveredFile) events.Effects {
	effects := events.EffectsNone
	if e.Unlisted {
		effects = events.EffectsUnknown
	}
	for _, f := range files {
		if f.Effects == events.EffectsConflict {
			return events.EffectsConflict
		}
		effects = events.EffectsRolledBack
	}
	return effects
}
