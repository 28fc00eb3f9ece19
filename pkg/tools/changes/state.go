package changes

import (
	"fmt"

	"correx/pkg/tools/workspace"
)

// stateOf is a state of the workspace as one of a set, without its time.
func stateOf(s workspace.State) State {
	switch {
	case !s.Exists:
		return State{}
	case s.Dir:
		return State{Type: Directory, Mode: s.Mode}
	case s.Link != "":
		return State{Type: Symlink, Target: s.Link}
	}
	return State{Type: File, Mode: s.Mode, Size: s.Size, SHA256: s.SHA256}
}

// brief is the state in a few words.
func (s State) brief() string {
	switch s.Type {
	case File:
		return fmt.Sprintf("a file of %d bytes, SHA-256 %.12s…, mode %04o", s.Size, s.SHA256, s.Mode)
	case Directory:
		return fmt.Sprintf("a directory of mode %04o", s.Mode)
	case Symlink:
		return s.describe()
	}
	return "nothing"
}
