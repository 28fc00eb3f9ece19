package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// reopen is what the next process finds.
func reopen(t *testing.T, b *bench) *Journal {
	t.Helper()
	j, _ := reopenPending(t, b)
	return j
}

func reopenPending(t *testing.T, b *bench) (*Journal, []Entry) {
	t.Helper()
	if err := b.journal.Close(); err != nil {
		t.Fatal(err)
	}
	j, pending, err := OpenJournal(b.dir, JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	b.journal = j
	return j, pending
}

func TestJournalSurvives(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "a.txt", "before")
	call := callOf("file_write", events.T2, p{"operation": "write", "path": "a.txt", "content": "after"})
	if out := b.executor.Run(background, call); out.Status != Completed {
		t.Fatalf("got %+v", out)
	}
	j, pending := reopenPending(t, b)
	if len(pending) != 1 || pending[0].Key != call.Key || pending[0].State != Running || pending[0].Tool != "file_write" {
		t.Fatalf("pending %+v", pending)
	}
	if err := j.Result(call.Key, []byte{0, 1, 0xff}); err != nil {
		t.Fatal(err)
	}
	j, pending = reopenPending(t, b)
	if len(pending) != 1 || pending[0].State != Result || !bytes.Equal(pending[0].Result, []byte{0, 1, 0xff}) {
		t.Fatalf("pending %+v", pending)
	}
	// The end was refused: somebody else ended it. It is taken back late.
	files, err := j.Rollback(call.Key)
	if err != nil || len(files) != 1 || files[0].Effects != events.EffectsRolledBack || files[0].Path != b.path("a.txt") {
		t.Fatalf("files %+v, %v", files, err)
	}
	wantContent(t, b.path("a.txt"), "before")
	j, pending = reopenPending(t, b)
	if len(pending) != 1 || len(pending[0].Files) != 1 {
		t.Fatalf("pending %+v", pending)
	}
	again, err := j.Rollback(call.Key)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(files) {
		t.Fatalf("a second rollback: %+v, %v", again, err)
	}
	if err := j.Clear(call.Key); err != nil {
		t.Fatal(err)
	}
	if _, pending = reopenPending(t, b); len(pending) != 0 {
		t.Fatalf("pending %+v", pending)
	}
	b.wantClean(t)
}

func TestJournalWithoutEntry(t *testing.T) {
	b := newBench(t, nil)
	before, err := os.Stat(b.journal.path())
	if err != nil {
		t.Fatal(err)
	}
	call := callOf("echo", events.T0, p{"text": "hi"})
	if out := b.executor.Run(background, call); out.Status != Completed || out.Receipt.Output != "hi" {
		t.Fatalf("got %+v", out)
	}
	if b.journal.Has(call.Key) {
		t.Fatal("echo has an entry")
	}
	files, err := b.journal.Rollback(call.Key)
	if err := errors.Join(err, b.journal.Result(call.Key, nil), b.journal.Clear(call.Key)); err != nil || files != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(b.journal.path()); err != nil || after.Size() != before.Size() {
		t.Fatal("echo wrote to the journal")
	}
}

// TestJournalTorn cuts the journal at every byte of its last record.
func TestJournalTorn(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "a.txt", "before")
	call := callOf("file_write", events.T2, p{"operation": "write", "path": "a.txt", "content": "after"})
	b.executor.Run(background, call)
	whole, err := os.ReadFile(b.journal.path())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.journal.Result(call.Key, []byte("the end")); err != nil {
		t.Fatal(err)
	}
	longer, err := os.ReadFile(b.journal.path())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.journal.Close(); err != nil {
		t.Fatal(err)
	}
	for cut := len(whole); cut <= len(longer); cut++ {
		for _, tail := range []string{"", "\x00\x00\x00\x00", strings.Repeat("\xff", 40)} {
			put(t, b.journal.path(), string(longer[:cut])+tail)
			j, pending, err := OpenJournal(b.dir, JournalOptions{})
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			j.Close()
			want := Running
			if cut == len(longer) {
				want = Result
			}
			if len(pending) != 1 || pending[0].State != want {
				t.Fatalf("cut at %d of %d: %+v", cut, len(longer), pending)
			}
		}
	}
}

func TestJournalDamaged(t *testing.T) {
	b := newBench(t, nil)
	call := callOf("file_write", events.T2, p{"operation": "write", "path": "a.txt", "content": "after"})
	b.executor.Run(background, call)
	if err := b.journal.Result(call.Key, []byte("the end")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(b.journal.path())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.journal.Close(); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func([]byte) []byte{
		"a flipped bit in a durable record": func(d []byte) []byte { d[len(magic)+frameHeader+20] ^= 1; return d },
		"another magic":                     func(d []byte) []byte { d[0] = 'x'; return d },
	} {
		put(t, b.journal.path(), string(damage(bytes.Clone(data))))
		if j, _, err := OpenJournal(b.dir, JournalOptions{}); err == nil || !strings.Contains(err.Error(), b.journal.path()) {
			if err == nil {
				j.Close()
			}
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJournalBelongsToOne(t *testing.T) {
	b := newBench(t, nil)
	if _, _, err := OpenJournal(b.dir, JournalOptions{}); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Fatalf("got %v", err)
	}
}

func TestJournalStaysSmall(t *testing.T) {
	b := newBench(t, nil)
	change := Change{Undo: workspace.Undo{Root: b.work, Rel: "a", Temp: "t"}}
	lasting := Key{Session: "s", Invocation: "lasting"}
	if err := b.journal.Begin(lasting, "x", []Change{change}, false); err != nil {
		t.Fatal(err)
	}
	result := bytes.Repeat([]byte("r"), 1<<20)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 8 {
				key := Key{Session: "s", Invocation: events.ToolInvocationID(fmt.Sprintf("w%d-%d", w, i))}
				if err := errors.Join(b.journal.Begin(key, "x", nil, true), b.journal.Result(key, result), b.journal.Clear(key)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	fi, err := os.Stat(b.journal.path())
	if err != nil || fi.Size() > compactAt+8<<20 {
		t.Fatalf("%d bytes, %v", fi.Size(), err)
	}
	_, pending := reopenPending(t, b)
	if len(pending) != 1 || pending[0].Key != lasting {
		t.Fatalf("%d pending", len(pending))
	}
}

func TestRollbackRespectsOthers(t *testing.T) {
	write := p{"operation": "write", "path": "a.txt", "content": "after"}
	for _, c := range []struct {
		name   string
		before string // absent: there is no file
		params p
		others func(t *testing.T, path string) // what somebody else does afterwards
		want   events.Effects
		left   string
	}{
		{"nobody did anything", "before", write, nil, events.EffectsRolledBack, "before"},
		{"a new file is deleted", absent, write, nil, events.EffectsRolledBack, absent},
		{"a deleted file comes back", "before", p{"operation": "delete", "path": "a.txt"}, nil, events.EffectsRolledBack, "before"},
		{"other bytes", "before", write, func(t *testing.T, path string) { put(t, path, "theirs") }, events.EffectsConflict, "theirs"},
		{"equal bytes in another file", "before", write, func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			put(t, path, "after")
		}, events.EffectsConflict, "after"},
		{"equal bytes in the same file", "before", write, func(t *testing.T, path string) { put(t, path, "after") }, events.EffectsConflict, "after"},
		{"deleted", "before", write, func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, events.EffectsConflict, absent},
		{"made again after the deletion", "before", p{"operation": "delete", "path": "a.txt"}, func(t *testing.T, path string) { put(t, path, "theirs") }, events.EffectsConflict, "theirs"},
		{"restored by somebody already", "before", write, func(t *testing.T, path string) { put(t, path, "before") }, events.EffectsNone, "before"},
		{"a link in its place", "before", write, func(t *testing.T, path string) {
			put(t, path+".other", "other")
			if err := errors.Join(os.Remove(path), os.Symlink(path+".other", path)); err != nil {
				t.Fatal(err)
			}
		}, events.EffectsConflict, "other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			if c.before != absent {
				b.put(t, "a.txt", c.before)
				if err := os.Chmod(b.path("a.txt"), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			was, _ := os.Stat(b.path("a.txt"))
			call := callOf("file_write", events.T2, c.params)
			if out := b.executor.Run(background, call); out.Status != Completed {
				t.Fatalf("got %+v", out)
			}
			if c.others != nil {
				c.others(t, b.path("a.txt"))
			}
			files, err := b.journal.Rollback(call.Key)
			if err != nil {
				t.Fatal(err)
			}
			if got := EffectsOf(Entry{}, files); got != c.want {
				t.Fatalf("effects %s, want %s: %+v", got, c.want, files)
			}
			wantContent(t, b.path("a.txt"), c.left)
			if c.want == events.EffectsConflict {
				wantContent(t, files[0].Backup, "before")
			}
			if c.want == events.EffectsRolledBack && was != nil {
				now, err := os.Stat(b.path("a.txt"))
				if err != nil || now.Mode() != was.Mode() || !now.ModTime().Equal(was.ModTime()) {
					t.Fatalf("mode %s→%s, time %s→%s, %v", was.Mode(), now.Mode(), was.ModTime(), now.ModTime(), err)
				}
			}
		})
	}
}

func TestRollbackRemovesDirectories(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "have/x", "x")
	call := callOf("file_write", events.T2, p{"operation": "write", "path": "have/one/two/a.txt", "content": "a"})
	b.executor.Run(background, call)
	wantContent(t, b.path("have/one/two/a.txt"), "a")
	b.put(t, "have/one/theirs", "t")
	if _, err := b.journal.Rollback(call.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(b.path("have/one/two")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("the inner directory is left")
	}
	wantContent(t, b.path("have/one/theirs"), "t") // and so the outer one
	wantContent(t, b.path("have/x"), "x")
}

// TestRollbackThroughLink swaps a directory for a link that leads out, after the
// change: nothing outside may be touched.
func TestRollbackThroughLink(t *testing.T) {
	b := newBench(t, nil)
	b.put(t, "d/a.txt", "before")
	call := callOf("file_write", events.T2, p{"operation": "write", "path": "d/a.txt", "content": "after"})
	b.executor.Run(background, call)
	outside := filepath.Join(filepath.Dir(b.work), "outside")
	if err := errors.Join(os.Rename(b.path("d"), outside), os.Symlink(outside, b.path("d"))); err != nil {
		t.Fatal(err)
	}
	files, _ := b.journal.Rollback(call.Key)
	wantContent(t, filepath.Join(outside, "a.txt"), "after")
	if len(files) != 1 || files[0].Effects == events.EffectsRolledBack {
		t.Fatalf("files %+v", files)
	}
}

func FuzzScan(f *testing.F) {
	frame, err := encodeFrame(record{Kind: clearRecord, ID: 3}, 8)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(magic))
	f.Add(append([]byte(magic), frame...))
	f.Add(append(append([]byte(magic), frame...), frame[:9]...))
	f.Fuzz(func(t *testing.T, data []byte) {
		n := 0
		sound, err := scan(data, func(record) error { n++; return nil })
		if err == nil && (sound < 0 || sound > int64(len(data))) {
			t.Fatalf("sound up to %d of %d", sound, len(data))
		}
		j := &Journal{entries: map[Key]*entry{}}
		_, _ = scan(data, j.replay) // whatever it is, it does not break
	})
}
