package changes

import (
	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// A Layer is the upper directory of an overlay over Dir.
type Layer struct{ Dir, Upper string }

// A Set is what a run changed, sorted by path. Of one path there is one change.
type Set struct {
	Changes []Change `json:"changes"`
}

// A Kind is what happened to a path.
type Kind string

const (
	Created Kind = "created"
	Changed Kind = "changed" // in content, mode or type
	Deleted Kind = "deleted"
)

// A Change is one path that changed. When a directory goes or becomes something
// else, all that was in it has a change of its own.
type Change struct {
	Path   string `json:"path"` // absolute, clean
	Kind   Kind   `json:"kind"`
	Before State  `json:"before"`
	After  State  `json:"after"`
	Old    []byte `json:"old,omitempty"`  // of a regular file before, if that is not what is in it after
	Data   []byte `json:"data,omitempty"` // of a regular file after
}

// A Type is what stands at a path.
type Type string

const (
	Nothing   Type = ""
	File      Type = "file"
	Directory Type = "directory"
	Symlink   Type = "symlink"
)

// A State is what stands at a path, apart from which inode it is.
type State struct {
	Type   Type   `json:"type,omitempty"`
	Mode   uint32 `json:"mode,omitempty"`   // permission bits; not of a symlink
	Size   int64  `json:"size,omitempty"`   // of a file
	SHA256 string `json:"sha256,omitempty"` // of a file
	MTime  int64  `json:"mtime,omitempty"`  // of a file after, ns since 1970
	Target string `json:"target,omitempty"` // of a symlink
}

// Same reports whether two states differ in nothing but time.
func (s State) Same(o State) bool {
	s.MTime, o.MTime = 0, 0
	return s == o
}

// Hash is how a [events.BaseHash] names the state: of a file the SHA-256 of what
// is in it, of nothing the empty string.
func (s State) Hash() string {
	switch s.Type {
	case File:
		return s.SHA256
	case Directory:
		return workspace.Hash([]byte("directory"))
	case Symlink:
		return workspace.Hash([]byte("symlink\x00" + s.Target))
	}
	return ""
}

// Empty reports whether nothing changed.
func (s Set) Empty() bool { return len(s.Changes) == 0 }

// Paths are all paths that change.
func (s Set) Paths() []string {
	paths := make([]string, len(s.Changes))
	for i, c := range s.Changes {
		paths[i] = c.Path
	}
	return paths
}

// Base is what the set rests on: the state before of every path that changes.
func (s Set) Base() []events.BaseHash {
	base := make([]events.BaseHash, len(s.Changes))
	for i, c := range s.Changes {
		base[i] = events.BaseHash{Path: c.Path, SHA256: c.Before.Hash()}
	}
	return base
}

// Summary returns the paths of each kind.
func (s Set) Summary() (created, changed, deleted []string) {
	for _, c := range s.Changes {
		switch c.Kind {
		case Created:
			created = append(created, c.Path)
		case Changed:
			changed = append(changed, c.Path)
		case Deleted:
			deleted = append(deleted, c.Path)
		}
	}
	return created, changed, deleted
}

// kindOf is the kind of a change between two states.
func kindOf(before, after State) Kind {
	switch {
	case before.Type == Nothing:
		return Created
	case after.Type == Nothing:
		return Deleted
	}
	return Changed
}
