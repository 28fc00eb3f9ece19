package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// at is the place of a name below a new directory.
func at(t *testing.T, r *Roots, name string) Place {
	t.Helper()
	p, err := r.At(filepath.Join(r.Dirs()[0], name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newRoots(t *testing.T) (*Roots, string) {
	t.Helper()
	r, err := Open([]string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, r.Dirs()[0]
}

// TestStepsGoThereAndBack makes each kind of step and takes it back.
func TestStepsGoThereAndBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(dir string) error
		step  func(Place, State, Recorder) error
	}{
		{"file", nil, func(p Place, s State, r Recorder) error { _, err := p.Put(s, []byte("x"), 0o640, 1e18, r); return err }},
		{"file over a file", func(d string) error { return os.WriteFile(d+"/n", []byte("old"), 0o600) },
			func(p Place, s State, r Recorder) error { _, err := p.Put(s, []byte("x"), 0o640, 1e18, r); return err }},
		{"file over a link", func(d string) error { return os.Symlink("/etc/passwd", d+"/n") },
			func(p Place, s State, r Recorder) error { _, err := p.Put(s, []byte("x"), 0o640, 1e18, r); return err }},
		{"link", nil, func(p Place, s State, r Recorder) error { _, err := p.Link(s, "to", r); return err }},
		{"link over a file", func(d string) error { return os.WriteFile(d+"/n", []byte("old"), 0o600) },
			func(p Place, s State, r Recorder) error { _, err := p.Link(s, "to", r); return err }},
		{"directory", nil, func(p Place, _ State, r Recorder) error { _, err := p.MakeDir(0o750, r); return err }},
		{"mode of a file", func(d string) error { return os.WriteFile(d+"/n", []byte("old"), 0o600) },
			func(p Place, s State, r Recorder) error { _, err := p.Chmod(s, 0o755, r); return err }},
		{"mode of a directory", func(d string) error { return os.Mkdir(d+"/n", 0o700) },
			func(p Place, s State, r Recorder) error { _, err := p.Chmod(s, 0o500, r); return err }},
		{"remove a file", func(d string) error { return os.WriteFile(d+"/n", []byte("old"), 0o600) },
			func(p Place, s State, r Recorder) error { return p.Remove(s, r) }},
		{"remove a link", func(d string) error { return os.Symlink("nowhere", d+"/n") },
			func(p Place, s State, r Recorder) error { return p.Remove(s, r) }},
		{"remove a directory", func(d string) error { return os.Mkdir(d+"/n", 0o750) },
			func(p Place, s State, r Recorder) error { return p.Remove(s, r) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			roots, dir := newRoots(t)
			if c.setup != nil {
				if err := c.setup(dir); err != nil {
					t.Fatal(err)
				}
			}
			p := at(t, roots, "n")
			was, err := p.LookAny(MaxAny)
			if err != nil {
				t.Fatal(err)
			}
			rec := &remembering{undo: Undo{Root: dir, Rel: "n", Before: was.State, Temp: TempName(), Trusted: true}}
			if err := c.step(p, was.State, rec); err != nil {
				t.Fatal(err)
			}
			if now, err := p.LookAny(MaxAny); err != nil || now.SameContent(was.State) && now.SameMode(was.State) {
				t.Fatalf("nothing changed: %+v, %v", now.State, err)
			}
			for _, want := range []Outcome{Restored, Untouched} {
				outcome, err := rec.undo.Restore(func() ([]byte, error) { return was.Data, nil })
				if err != nil || outcome != want {
					t.Fatalf("restore: %v, %v; want %v", outcome, err, want)
				}
				if now, err := p.LookAny(MaxAny); err != nil || !now.SameContent(was.State) || now.Mode != was.Mode {
					t.Fatalf("it is %+v, %v; and was %+v", now.State, err, was.State)
				}
			}
			if left, err := filepath.Glob(dir + "/.correx-*"); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// remembering is a recorder of one step.
type remembering struct{ undo Undo }

func (r *remembering) Staged(_ string, _, after State) error { r.undo.Staged = &after; return nil }
func (r *remembering) Applied(_ string, after State) error   { r.undo.Applied = &after; return nil }
func (r *remembering) Temp(string) string                    { return r.undo.Temp }

// TestStepsMeetOthers: nothing is changed that is not what was read.
func TestStepsMeetOthers(t *testing.T) {
	roots, dir := newRoots(t)
	if err := os.WriteFile(dir+"/n", []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := at(t, roots, "n")
	was, err := p.LookAny(MaxAny)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/n", []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, put := p.Put(was.State, nil, 0o644, 0, noRecorder{})
	_, link := p.Link(was.State, "x", noRecorder{})
	_, mode := p.Chmod(was.State, 0o600, noRecorder{})
	_, made := p.MakeDir(0o755, noRecorder{})
	for name, err := range map[string]error{"put": put, "link": link, "mode": mode, "remove": p.Remove(was.State, nil), "make": made} {
		if !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left %v, %v", names, err)
	}
}

// TestNoLinkIsFollowed: a directory that became a link leads nowhere, also not to
// another below the same root.
func TestNoLinkIsFollowed(t *testing.T) {
	roots, dir := newRoots(t)
	for _, d := range []string{"/a", "/b"} {
		if err := os.Mkdir(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	found, err := roots.Find(dir + "/a/x")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(dir+"/a"), os.Symlink("b", dir+"/a"), os.WriteFile(dir+"/b/x", []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := found.Write(State{}, []byte("y"), nil); err == nil {
		t.Error("it was written through a link")
	}
	if f, err := at(t, roots, "a/x").LookAny(MaxAny); err != nil || f.Exists {
		t.Errorf("it was read through a link: %+v, %v", f.State, err)
	}
	for _, bad := range []string{"a", "/", dir, dir + "/../x", dir + "x", dir + "/a/"} {
		if _, err := roots.At(bad); err == nil {
			t.Errorf("%s was found", bad)
		}
	}
}
