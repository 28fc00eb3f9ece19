package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Roots are allowed directories. The zero value allows nothing.
type Roots struct{ all []*root }

type root struct {
	fs    *os.Root
	real  string // absolute, no symbolic links
	given string // absolute, as configured
}

// Open opens the directories, which must exist, and names every one that it
// cannot.
func Open(dirs []string) (*Roots, error) {
	var r Roots
	var faults []error
	for _, dir := range dirs {
		o, err := openRoot(dir)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		r.all = append(r.all, o)
	}
	if err := errors.Join(faults...); err != nil {
		_ = r.Close()
		return nil, err
	}
	return &r, nil
}

func openRoot(dir string) (*root, error) {
	if dir == "" {
		return nil, errors.New("open allowed directory: the path is empty")
	}
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open allowed directory %q: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, fmt.Errorf("open allowed directory %q: %w; create it first", dir, err)
	}
	fs, err := os.OpenRoot(real)
	if err != nil {
		return nil, fmt.Errorf("open allowed directory %q: %w", dir, err)
	}
	return &root{fs: fs, real: real, given: given}, nil
}

// Close closes the directories.
func (r *Roots) Close() error {
	var faults []error
	for _, o := range r.all {
		faults = append(faults, o.fs.Close())
	}
	return errors.Join(faults...)
}

// Dirs returns the directories, absolute and free of symbolic links.
func (r *Roots) Dirs() []string {
	dirs := make([]string, len(r.all))
	for i, o := range r.all {
		dirs[i] = o.real
	}
	return dirs
}

// Find turns a path into a place. A relative path is below the first directory.
// Links that stay inside are followed; the place itself need not exist.
func (r *Roots) Find(path string) (Place, error) {
	switch {
	case len(r.all) == 0:
		return Place{}, &DeniedError{Path: path, Reason: "no directory is allowed at all"}
	case path == "":
		return Place{}, &DeniedError{Path: path, Reason: "the path is empty"}
	case len(path) > 4096 || strings.ContainsRune(path, 0):
		return Place{}, &DeniedError{Path: path, Reason: "it is longer than 4096 bytes or has a NUL"}
	}
	if !filepath.IsAbs(path) {
		return r.all[0].place(path, path)
	}
	for _, o := range r.all {
		for _, dir := range []string{o.real, o.given} {
			if rel, ok := below(dir, path); ok {
				return o.place(rel, path)
			}
		}
	}
	return Place{}, &DeniedError{Path: path, Reason: "it is outside the allowed directories: " + strings.Join(r.Dirs(), ", ")}
}

// below returns path relative to dir, when its components begin with dir's.
func below(dir, path string) (string, bool) {
	want, have := split(dir), split(path)
	if len(have) < len(want) {
		return "", false
	}
	for i, c := range want {
		if have[i] != c {
			return "", false
		}
	}
	return strings.Join(have[len(want):], "/"), true
}

// split returns the components of a path without empty ones and dots. It leaves
// .. alone, whose meaning depends on links.
func split(path string) []string {
	var out []string
	for _, c := range strings.Split(path, "/") {
		if c != "" && c != "." {
			out = append(out, c)
		}
	}
	return out
}

// A DeniedError says that a path may not be used.
type DeniedError struct{ Path, Reason string }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("path %q is not allowed: %s", e.Path, e.Reason)
}
