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
	for _, c := range strings.Split(place.Rel(), "/") {
		if strings.EqualFold(c, ".git") {
			return fmt.Errorf("%s is in .git, which is not changed by file tools: what stands there can make git run programs", place.Path())
		}
	}
	for _, name := range protected {
		path := name
		if !filepath.IsAbs(name) {
			path = filepath.Join(place.Root(), name)
		}
		if inside(path, place.Path()) || inside(place.Path(), path) {
			return fmt.Errorf("%s is not changed: the configuration protects %s", place.Path(), name)
		}
	}
	return nil
}
