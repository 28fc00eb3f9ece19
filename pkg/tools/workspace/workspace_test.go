package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// open is one allowed directory.
func open(t *testing.T) (*Roots, string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, dir
}

func find(t *testing.T, r *Roots, path string) Place {
	t.Helper()
	p, err := r.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

// A meddler does something at the last moment before a change.
type meddler struct {
	noRecorder
	meddle func()
	err    error
}

func (m meddler) Staged(string, State, State) error {
	if m.meddle != nil {
		m.meddle()
	}
	return m.err
}

func TestWriteIsNotOverAnothers(t *testing.T) {
	for _, c := range []struct {
		name   string
		before string // "": there is no file
		remove bool
		meddle func(path string) error
		left   string
	}{
		{"changed", "before", false, func(p string) error { return os.WriteFile(p, []byte("theirs"), 0o644) }, "theirs"},
		{"changed back", "before", false, func(p string) error { return os.WriteFile(p, []byte("before"), 0o644) }, "before"},
		{"replaced by equal bytes", "before", false, func(p string) error {
			return errors.Join(os.WriteFile(p+"2", []byte("before"), 0o644), os.Rename(p+"2", p))
		}, "before"},
		{"made", "", false, func(p string) error { return os.WriteFile(p, []byte("theirs"), 0o644) }, "theirs"},
		{"made as a link", "", false, func(p string) error {
			return errors.Join(os.WriteFile(p+"2", []byte("theirs"), 0o644), os.Symlink(p+"2", p))
		}, "theirs"},
		{"changed before a deletion", "before", true, func(p string) error { return os.WriteFile(p, []byte("theirs"), 0o644) }, "theirs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, dir := open(t)
			path := filepath.Join(dir, "a.txt")
			if c.before != "" {
				put(t, path, c.before)
			}
			place := find(t, r, "a.txt")
			file, err := place.Look(MaxSize)
			if err != nil {
				t.Fatal(err)
			}
			rec := meddler{meddle: func() {
				if err := c.meddle(path); err != nil {
					t.Error(err)
				}
			}}
			if c.remove {
				err = place.Delete(file.State, rec)
			} else {
				_, err = place.Write(file.State, []byte("ours"), rec)
			}
			if err == nil {
				t.Fatal("it was changed all the same")
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != c.left {
				t.Fatalf("left %q, %v", got, err)
			}
			if strings.Contains(names(t, dir), ".correx-") {
				t.Fatalf("left behind: %s", names(t, dir))
			}
		})
	}
}

func TestWriteForbiddenByRecorder(t *testing.T) {
	r, dir := open(t)
	put(t, dir+"/a.txt", "before")
	place := find(t, r, "a.txt")
	file, err := place.Look(MaxSize)
	if err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	if _, err := place.Write(file.State, []byte("x"), meddler{err: no}); !errors.Is(err, no) {
		t.Fatalf("got %v", err)
	}
	if err := place.Delete(file.State, meddler{err: no}); !errors.Is(err, no) {
		t.Fatalf("got %v", err)
	}
	if got := names(t, dir); got != "a.txt" {
		t.Fatalf("left %s", got)
	}
}

func TestWriteReportsWhatIsThere(t *testing.T) {
	r, dir := open(t)
	if err := os.MkdirAll(dir+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	place := find(t, r, "sub/new/a.txt")
	if got := fmt.Sprint(place.MissingDirs()); got != "[sub/new]" {
		t.Fatalf("missing %s", got)
	}
	after, err := place.Write(State{}, []byte("one"), nil)
	if err != nil {
		t.Fatal(err)
	}
	now, err := place.Look(MaxSize)
	if err != nil || !now.Same(after) || after.CTime == 0 {
		t.Fatalf("reported %+v, there is %+v, %v", after, now.State, err)
	}
	if _, err := place.Write(State{}, []byte("two"), nil); !errors.Is(err, ErrChanged) {
		t.Fatalf("a new file over an old one: %v", err)
	}
}

func TestWriteDropsSetuid(t *testing.T) {
	r, dir := open(t)
	put(t, dir+"/a", "before")
	if err := unix.Chmod(dir+"/a", 0o6755); err != nil {
		t.Fatal(err)
	}
	place := find(t, r, "a")
	file, err := place.Look(MaxSize)
	if err != nil {
		t.Fatal(err)
	}
	after, err := place.Write(file.State, []byte("after"), nil)
	if err != nil || after.Mode != 0o755 {
		t.Fatalf("mode %o, %v", after.Mode, err)
	}
}

func TestFind(t *testing.T) {
	r, dir := open(t)
	other, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(other, alias); err != nil {
		t.Fatal(err)
	}
	two, err := Open([]string{dir, alias})
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	for _, c := range []struct {
		roots      *Roots
		path, want string // empty: denied
	}{
		{r, "a//b/./c", dir + "/a/b/c"}, {r, "a/../b", dir + "/b"}, {r, ".", dir}, {r, dir, dir}, {r, dir + "/", dir},
		{r, "..", ""}, {r, "a/../../b", ""}, {r, "/", ""}, {r, dir + "2/a", ""}, {r, "", ""}, {r, "a\x00b", ""}, {r, strings.Repeat("a/", 4096), ""},
		{r, other + "/a", ""}, {two, other + "/a", other + "/a"}, {two, alias + "/a", other + "/a"}, {two, "a", dir + "/a"},
		{&Roots{}, "a", ""},
	} {
		p, err := c.roots.Find(c.path)
		var denied *DeniedError
		if c.want == "" && !errors.As(err, &denied) || c.want != "" && (err != nil || p.Path() != c.want) {
			t.Errorf("%.40q is %v, %v; want %q", c.path, p, err, c.want)
		}
	}
}

func FuzzFind(f *testing.F) {
	dir := f.TempDir()
	for name, target := range map[string]string{"in": "sub", "out": "/etc", "up": "..", "loop": "loop", "deep": "sub/../up/x"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			f.Fatal(err)
		}
	}
	r, err := Open([]string{dir})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"in/a", "out/passwd", "up/x", "../x", "a/../..", "in/../up", "deep"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		p, err := r.Find(path)
		if err != nil {
			return
		}
		if _, ok := below(r.Dirs()[0], p.Path()); !ok || !filepath.IsLocal(p.Rel()) {
			t.Fatalf("%q is %s", path, p.Path())
		}
	})
}
