package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMkdirIsTakenBack: a directory that was made goes again, with those above it that were
// made for it; not one that somebody uses, and not somebody else's.
func TestMkdirIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		known  bool // that it was made got on record
		meddle func(dir string) error
		want   Outcome
		left   string
	}{
		{"as it was made", true, nil, Restored, ""},
		{"made, and not on record", false, nil, Restored, ""},
		{"with somebody's file in it", true, func(d string) error { return os.WriteFile(d+"/theirs", nil, 0o600) }, Conflict, "x"},
		{"gone", true, os.Remove, Untouched, ""},
		{"somebody else's by the same name", true, func(d string) error {
			other := filepath.Dir(d) + "/other" // made first, so that it is not the same inode again
			if err := os.Mkdir(other, 0o700); err != nil {
				return err
			}
			return unix.Rename(other, d) // which takes the place of an empty one
		}, Conflict, "x"},
		{"a file by the same name", true, func(d string) error {
			if err := os.Remove(d); err != nil {
				return err
			}
			return os.WriteFile(d, []byte("theirs"), 0o600)
		}, Conflict, "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, dir := open(t)
			place := find(t, r, "x/y/z")
			u := Undo{Root: dir, Rel: place.Rel(), Temp: TempName(), Dirs: place.MissingDirs(), Trusted: true, Staged: &State{Exists: true, Dir: true}}
			made, err := place.Mkdir(nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.known {
				u.Applied = &made
			}
			if c.meddle != nil {
				if err := c.meddle(place.Path()); err != nil {
					t.Fatal(err)
				}
			}
			if outcome, err := u.Restore(nil); err != nil || outcome != c.want {
				t.Fatalf("outcome %d, %v", outcome, err)
			}
			if outcome, err := u.Restore(nil); err != nil || outcome == Restored { // again, after a crash
				t.Fatalf("outcome %d the second time, %v", outcome, err)
			}
			if got := names(t, dir); got != c.left {
				t.Fatalf("left %q", got)
			}
		})
	}
}
