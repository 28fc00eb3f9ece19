package projection

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"correx/internal/natstest"
	"correx/pkg/events"
)

// Backups of a database that is being written are each that of the log up to their
// last sequence, and a projector goes on from there.
func TestABackupIsTheLogUpToItsLastSequence(t *testing.T) {
	bus := startBus(t)
	log := openLog(t, bus.URL())
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	p, stop := following(t, log, path)
	recs := messages(t, 600)
	publish(t, bus.JetStream(t), recs[:100])
	wait(t, p, 100)
	published := make(chan struct{})
	go func() {
		defer close(published)
		for i := 100; i < len(recs); i++ {
			if _, err := log.Append(natstest.Context(t), message(i), uint64(i), ""); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() { <-published })
	var copies []Copy
	for _, name := range []string{"1.db", "2 ?#%.db", "new/3.db"} {
		c, err := Backup(t.Context(), path, filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		copies = append(copies, c)
	}
	<-published
	wait(t, p, 600)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range copies {
		if c.Last < 100 || c.Events != c.Last {
			t.Errorf("%s has %d events and ends at %d", c.Path, c.Events, c.Last)
		}
		fresh := filepath.Join(t.TempDir(), "fresh.db")
		id := Identity(log.Identity())
		if err := projectThrough(natstest.Context(t), fresh, id, log, c.Last, func(uint64, uint64) {}); err != nil {
			t.Fatal(err)
		}
		if got, want := dumpOf(t, c.Path), dumpOf(t, fresh); string(got) != string(want) {
			t.Errorf("%s is not the log up to %d:\n%s", c.Path, c.Last, firstDifference(got, want))
		}
		p, stop := following(t, log, c.Path)
		if p.Applied() < c.Last {
			t.Errorf("a projector begins at %d on %s", p.Applied(), c.Path)
		}
		wait(t, p, 600)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		same(t, c.Path, log)
	}
}

// What a backup makes is one private file, sound with its full-text search, that
// can be read while a projector writes it.
func TestABackupIsOneWholeFile(t *testing.T) {
	path := recorded(t, messages(t, 30))
	to := filepath.Join(t.TempDir(), "copy.db")
	if _, err := Backup(t.Context(), path, to); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
	if names := namesIn(t, filepath.Dir(to)); names != "copy.db copy.db.lock" {
		t.Errorf("beside it are %s", names)
	}
	conn := stranger(t, to)
	for query, want := range map[string]string{"PRAGMA journal_mode": "wal", "PRAGMA integrity_check": "ok"} {
		var got string
		if err := conn.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q: %v", query, got, err)
		}
	}
}

// recorded is the path of a database, closed, of recs.
func recorded(t *testing.T, recs []events.Record) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	db := open(t, path)
	apply(t, db, recs, len(recs))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func namesIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestABackupWritesOverNothing(t *testing.T) {
	path := recorded(t, messages(t, 3))
	for name, lay := range map[string]func(to string) error{
		"a file":            func(to string) error { return os.WriteFile(to, []byte("mine"), 0o600) },
		"a link to nowhere": func(to string) error { return os.Symlink("nowhere", to) },
		"a directory":       func(to string) error { return os.Mkdir(to, 0o700) },
		"a stale WAL":       func(to string) error { return os.WriteFile(to+"-wal", []byte("of another file"), 0o600) },
		"a stale journal":   func(to string) error { return os.WriteFile(to+"-journal", []byte("of another file"), 0o600) },
	} {
		to := filepath.Join(t.TempDir(), "copy.db")
		if err := lay(to); err != nil {
			t.Fatal(err)
		}
		before := namesIn(t, filepath.Dir(to))
		if _, err := Backup(t.Context(), path, to); !errors.Is(err, fs.ErrExist) {
			t.Errorf("over %s: %v, want %v", name, err, fs.ErrExist)
		}
		if after := namesIn(t, filepath.Dir(to)); after != before {
			t.Errorf("over %s it leaves %s of %s", name, after, before)
		}
	}
	if _, err := Backup(t.Context(), path, path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over itself: %v, want %v", err, fs.ErrExist)
	}
}

func TestABackupThatFailsLeavesNothing(t *testing.T) {
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	path := recorded(t, messages(t, 3))
	damage := damagedInside(t)
	to := filepath.Join(t.TempDir(), "copy.db")
	if _, err := Backup(stopped, path, to); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v, want %v", err, context.Canceled)
	}
	if _, err := Backup(t.Context(), damage, to); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "copy "+damage) {
		t.Errorf("of a file that is damaged inside: %v, want %v while it is copied", err, ErrDamaged)
	}
	if _, err := Backup(t.Context(), path+".none", to); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("of no file: %v", err)
	}
	lock, err := Acquire(to)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, err := Backup(t.Context(), path, to); !errors.Is(err, ErrLocked) {
		t.Errorf("where a projector begins: %v, want %v", err, ErrLocked)
	}
	if names := namesIn(t, filepath.Dir(to)); names != "copy.db.lock" {
		t.Errorf("they leave %s", names)
	}
}

// damagedInside is a database that opens and says where it is, but whose
// second half is zeros.
func damagedInside(t *testing.T) string {
	t.Helper()
	path := recorded(t, messages(t, 3000))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(whole[len(whole)/2:])
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Wherever a backup is killed: its name is that of nothing or of all of it, and the
// next one clears up.
func TestAKilledBackupLeavesNothingUnderItsName(t *testing.T) {
	s := newStory(t)
	s.add(message(0))
	for range 500 {
		s.add(events.MessageAdded{Ref: mainRef("s1"), Role: events.RoleUser, Text: strings.Repeat("x", 16<<10)})
	}
	path := recorded(t, s.recs)
	want := dumpOf(t, path)
	to := filepath.Join(t.TempDir(), "copy.db")
	for k := range 8 {
		killBackup(t, path, to, int64(k)<<20)
		_, err := os.Stat(to)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if got := dumpOf(t, to); string(got) != string(want) {
			t.Fatalf("kill %d leaves another database:\n%s", k, firstDifference(got, want))
		}
		if err := remove(to); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(to+unfinished, want[:len(want)/2], 0o600); err != nil { // if no kill left one
		t.Fatal(err)
	}
	if _, err := Backup(t.Context(), path, to); err != nil {
		t.Fatal(err)
	}
	if got := dumpOf(t, to); string(got) != string(want) {
		t.Errorf("after the kills it is another database:\n%s", firstDifference(got, want))
	}
	if _, err := os.Stat(to + unfinished); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unfinished file is still there: %v", err)
	}
}

// killBackup starts a backup and kills it when there are more than so many bytes of
// it, or the file has its name.
func killBackup(t *testing.T, path, to string, bytes int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDB+"="+path, childTo+"="+to)
	cmd.Stderr = os.Stderr
	if err := remove(to + unfinished); err != nil { // or it would be taken for this one's
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("the backup failed by itself: %v", err)
			}
			return
		default:
		}
		info, err := os.Stat(to + unfinished)
		_, named := os.Lstat(to)
		if err == nil && info.Size() > bytes || named == nil {
			_ = cmd.Process.Kill() // it may just have ended
			<-ended
			return
		}
	}
}
