package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"correx/pkg/tools/workspace"
)

// A Step is one change of an entry that a rollback would take back, where it was
// made.
type Step struct {
	Path   string `json:"path"`
	Before string `json:"before"`         // "nothing", "file", "directory", "symbolic link"
	After  string `json:"after"`          // the same, or "unknown"
	Made   string `json:"made,omitempty"` // "yes", "perhaps"; empty: not yet
}

// steps are the changes of an entry.
func (e *entry) steps() []Step {
	var out []Step
	for _, c := range e.files {
		s := Step{Path: c.Path(), Before: kindOf(c.Before), After: "unknown"}
		switch {
		case c.Applied != nil:
			s.After, s.Made = kindOf(*c.Applied), "yes"
		case c.Staged != nil:
			s.After, s.Made = kindOf(*c.Staged), "perhaps"
		case !c.Trusted:
			s.Made = "perhaps"
		}
		out = append(out, s)
	}
	return out
}

func kindOf(s workspace.State) string {
	switch {
	case !s.Exists:
		return "nothing"
	case s.Dir:
		return "directory"
	case s.Link != "":
		return "symbolic link"
	}
	return "file"
}

// Leftovers are the directories of invocations below root, the Root of an
// [Executor], which empties it when it is made. While no executor runs they are
// what a former process left: overlays' layers and all else that its tools kept.
func Leftovers(root string) ([]string, error) {
	sessions, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, s := range sessions {
		dir := filepath.Join(root, s.Name())
		invocations, err := os.ReadDir(dir)
		if err != nil || len(invocations) == 0 {
			out = append(out, dir)
			continue
		}
		for _, i := range invocations {
			out = append(out, filepath.Join(dir, i.Name()))
		}
	}
	return out, err
}
