package changes

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"correx/pkg/tools/workspace"
)

func (b bench) open() *workspace.Roots {
	b.Helper()
	roots, err := workspace.Open([]string{b.dir})
	b.must(err)
	b.Cleanup(func() { roots.Close() })
	return roots
}

// TestApplyWithoutARecorder takes back what it made before it failed.
func TestApplyWithoutARecorder(t *testing.T) {
	b := newBench(t)
	b.put(b.dir+"/f", "old", 0o644)
	b.put(b.dir+"/t/x", "x", 0o644)
	b.must(os.Mkdir(b.upper, 0o755))
	b.put(b.upper+"/a/new", "1", 0o644)
	b.put(b.upper+"/f", "new", 0o600)
	b.whiteout(b.upper + "/t")
	s, err := b.read()
	b.must(err)
	roots := b.open()
	plan, err := s.Plan(roots)
	b.must(err)
	b.put(b.dir+"/f", "theirs", 0o644) // after the plan, before its steps
	err = plan.Apply(context.Background(), nil)
	if !errors.Is(err, workspace.ErrChanged) || !strings.Contains(err.Error(), b.dir+"/f") {
		t.Errorf("apply: %v", err)
	}
	for path, want := range map[string]string{"f": "theirs", "t/x": "x"} {
		if got, err := os.ReadFile(b.dir + "/" + path); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v", path, got, err)
		}
	}
	if entries, err := os.ReadDir(b.dir); err != nil || len(entries) != 2 {
		t.Errorf("left %v, %v", entries, err)
	}
	b.put(b.dir+"/f", "old", 0o644)
	b.must(s.Apply(context.Background(), roots, nil))
	if got, err := os.ReadFile(b.dir + "/f"); err != nil || string(got) != "new" {
		t.Errorf("f has %q, %v", got, err)
	}
	if _, err := os.Lstat(b.dir + "/t"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("t is there: %v", err)
	}
}

// TestCheckNamesWhatMoved: content, mode, type, and what came to be.
func TestCheckNamesWhatMoved(t *testing.T) {
	for _, c := range []struct {
		name, path string
		move       func(b bench)
	}{
		{"content", "f", func(b bench) { b.put(b.dir+"/f", "theirs", 0o644) }},
		{"mode", "f", func(b bench) { b.must(os.Chmod(b.dir+"/f", 0o600)) }},
		{"gone", "f", func(b bench) { b.must(os.Remove(b.dir + "/f")) }},
		{"a link", "f", func(b bench) {
			b.must(os.Remove(b.dir + "/f"))
			b.must(os.Symlink("t", b.dir+"/f"))
		}},
		{"came to be", "new", func(b bench) { b.put(b.dir+"/new", "theirs", 0o644) }},
		{"its directory is a link", "d/x", func(b bench) {
			b.must(os.RemoveAll(b.dir + "/d"))
			b.must(os.Symlink("t", b.dir+"/d"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.put(b.dir+"/f", "old", 0o644)
			b.put(b.dir+"/t/x", "x", 0o644)
			b.put(b.dir+"/d/x", "x", 0o644)
			b.must(os.Mkdir(b.upper, 0o755))
			b.put(b.upper+"/f", "by the command", 0o644)
			b.put(b.upper+"/new", "by the command", 0o644)
			b.put(b.upper+"/d/x", "by the command", 0o644)
			s, err := b.read()
			b.must(err)
			roots := b.open()
			b.must(s.Check(roots))
			c.move(b)
			var moved *MovedError
			if err := s.Check(roots); !errors.As(err, &moved) || moved.Path != b.dir+"/"+c.path {
				t.Errorf("check: %v", err)
			}
			if err := s.Apply(context.Background(), roots, nil); !errors.As(err, &moved) {
				t.Errorf("apply: %v", err)
			}
		})
	}
}

// TestApplyStaysBelowTheRoots: a set from elsewhere writes nowhere else.
func TestApplyStaysBelowTheRoots(t *testing.T) {
	b := newBench(t)
	s := Set{Changes: []Change{{Path: b.upper, Kind: Created, After: State{Type: Directory, Mode: 0o755}}}}
	var denied *workspace.DeniedError
	if err := s.Apply(context.Background(), b.open(), nil); !errors.As(err, &denied) {
		t.Errorf("apply: %v", err)
	}
	s.Changes[0].Path = b.dir
	if err := s.Apply(context.Background(), b.open(), nil); !errors.As(err, &denied) {
		t.Errorf("apply to the directory itself: %v", err)
	}
}
