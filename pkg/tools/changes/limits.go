package changes

import (
	"fmt"

	"correx/pkg/tools/workspace"
)

// Limits bound a set. Zero means the default in the comment.
type Limits struct {
	Entries  int   // paths that change, and entries of upper layers; 10,000
	FileSize int64 // bytes of one file, before or after; 64 MiB
	Total    int64 // bytes of all files, before and after; 128 MiB
}

// MaxFileSize is the most that [Limits.FileSize] can be.
const MaxFileSize = workspace.MaxAny

const (
	defaultEntries = 10_000
	defaultTotal   = 128 << 20
	maxDepth       = 128  // of directories in a layer
	maxPath        = 4095 // bytes
)

func (l Limits) withDefaults() Limits {
	if l.Entries <= 0 {
		l.Entries = defaultEntries
	}
	if l.FileSize <= 0 || l.FileSize > MaxFileSize {
		l.FileSize = MaxFileSize
	}
	if l.Total <= 0 {
		l.Total = defaultTotal
	}
	return l
}

// A RefusedError says why what stands at a path cannot be part of a set, and what
// to do about it.
type RefusedError struct{ Path, Reason string }

func (e *RefusedError) Error() string { return e.Path + " " + e.Reason }

func refuse(path, format string, a ...any) error {
	return &RefusedError{Path: path, Reason: fmt.Sprintf(format, a...)}
}

// A MovedError says that a path is not any more what a set rests on. Running the
// command again may mend it.
type MovedError struct {
	Path string
	Why  string // "had …, and has … now"
}

func (e *MovedError) Error() string {
	return e.Path + " is not any more what this rests on: " + e.Why + "; nothing was done"
}

// Unwrap has it be [workspace.ErrChanged] too.
func (e *MovedError) Unwrap() error { return workspace.ErrChanged }
