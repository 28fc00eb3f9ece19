package tools

import (
	"fmt"
	"path/filepath"
	"strings"

	"correx/pkg/tools/workspace"
)

// checkProtected refuses to change what is read-only to processes too: .git, in which
// a line can make the next git of a person run a program, and what the configuration
// names.
func checkProtected(place workspace.Place, protected []string) error {
	if inGit(place.Rel()) {
		return fmt.Errorf("%s is in .git, which is not changed by file tools: what stands there can make git run programs", place.Path())
	}
	if name := protectedBy(place.Root(), place.Path(), protected); name != "" {
		return fmt.Errorf("%s is not changed: the configuration protects %s", place.Path(), name)
	}
	return nil
}

// protects reports whether nothing may change path, which is rel to root.
func protects(root, rel, path string, protected []string) bool {
	return inGit(rel) || protectedBy(root, path, protected) != ""
}

func inGit(rel string) bool {
	for _, c := range strings.Split(rel, "/") {
		if strings.EqualFold(c, ".git") {
			return true
		}
	}
	return false
}

// protectedBy returns the entry that protects a path below root, if there is one.
func protectedBy(root, path string, protected []string) string {
	for _, name := range protected {
		at := name
		if !filepath.IsAbs(name) {
			at = filepath.Join(root, name)
		}
		if inside(at, path) || inside(path, at) {
			return name
		}
	}
	return ""
}
