package tools

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// fileParameters are the parameters of all file tools. A nil pointer was not
// given.
type fileParameters struct {
	Operation   string  `json:"operation"`
	Path        *string `json:"path"`
	Offset      *int    `json:"offset"`
	Limit       *int    `json:"limit"`
	Content     *string `json:"content"`
	Target      *string `json:"target"`
	Replacement *string `json:"replacement"`
	Patch       *string `json:"patch"`
}

// given tells which parameters there are, in the order of their schema.
func (p fileParameters) given() []string {
	var names []string
	for _, f := range []struct {
		name string
		is   bool
	}{
		{"path", p.Path != nil}, {"offset", p.Offset != nil}, {"limit", p.Limit != nil}, {"content", p.Content != nil},
		{"target", p.Target != nil}, {"replacement", p.Replacement != nil}, {"patch", p.Patch != nil},
	} {
		if f.is {
			names = append(names, f.name)
		}
	}
	return names
}

// An operation is one thing a file tool can do.
type operation struct {
	name  string
	needs []string // parameters besides operation
	takes []string // parameters that may be there
	dirs  bool     // path may end in a slash, as a directory's does
	off   string   // why it is not offered; empty if it is
}

// files is what the file tools have in common.
type files struct {
	name       string
	roots      *workspace.Roots
	operations []operation
}

func openFiles(name string, dirs []string, operations ...operation) (files, error) {
	roots, err := workspace.Open(dirs)
	if err != nil {
		return files{}, err
	}
	return files{name: name, roots: roots, operations: operations}, nil
}

// Name implements [Tool].
func (f files) Name() string { return f.name }

// A fileRequest is a request whose parameters belong together, and its place.
type fileRequest struct {
	fileParameters
	asked string // path as the request has it
	place workspace.Place
	isDir bool // it must be a directory: its path ends in a slash
}

// parse reads the parameters of one request and finds its place, if it has one.
func (f files) parse(r events.ToolRequest) (fileRequest, error) {
	var q fileRequest
	if err := decode(r, &q.fileParameters); err != nil {
		return q, fmt.Errorf("%s: %w", f.name, err)
	}
	op, err := f.operation(q.fileParameters)
	if err != nil || q.Path == nil {
		return q, err
	}
	q.asked = *q.Path
	q.isDir = strings.HasSuffix(q.asked, "/") || strings.HasSuffix(q.asked, "/.")
	if q.place, err = f.find(q.asked); err != nil {
		return q, fmt.Errorf("%s: %w", f.name, err)
	}
	if q.isDir && !op.dirs {
		return q, fmt.Errorf("%s: the path %q ends in a slash, as a directory's does; to %s a file, give its name", f.name, q.asked, op.name)
	}
	return q, nil
}

func (f files) find(path string) (workspace.Place, error) {
	name, err := readName(path)
	if err != nil {
		return workspace.Place{}, err
	}
	for _, c := range strings.Split(name, "/") {
		if len(c) > 255 {
			return workspace.Place{}, fmt.Errorf("a name in the path is %d bytes long (%.20s…), and 255 are allowed", len(c), showName(c))
		}
	}
	return f.roots.Find(name)
}

// operation finds what is asked for, and makes sure that exactly its parameters are
// there.
func (f files) operation(p fileParameters) (operation, error) {
	given := p.given()
	var known []string
	for _, o := range f.operations {
		switch {
		case o.name != p.Operation && o.off == "":
			known = append(known, o.name)
			continue
		case o.name != p.Operation:
			continue
		case o.off != "":
			return o, fmt.Errorf("%s: the operation %s is not to be had here: %s", f.name, o.name, o.off)
		}
		for _, n := range o.needs {
			if !slices.Contains(given, n) {
				return o, fmt.Errorf("%s: the operation %s needs %s, which is missing", f.name, o.name, n)
			}
		}
		for _, n := range given {
			if !slices.Contains(o.needs, n) && !slices.Contains(o.takes, n) {
				return o, fmt.Errorf("%s: the operation %s takes no %s", f.name, o.name, n)
			}
		}
		return o, nil
	}
	if p.Operation == "" {
		return operation{}, fmt.Errorf("%s: operation is missing; use one of %q", f.name, known)
	}
	return operation{}, fmt.Errorf("%s: operation %q is unknown; use one of %q", f.name, p.Operation, known)
}

// leads says where a path leads that goes through a symbolic link.
func leads(asked string, place workspace.Place) string {
	name, err := readName(asked)
	if err != nil {
		return ""
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(place.Root(), name)
	}
	if filepath.Clean(name) == place.Path() {
		return ""
	}
	return fmt.Sprintf(" (which leads to %s)", showName(place.Path()))
}

// near says what there is in the directory of a place where nothing is, and first
// what differs in case only.
func near(place workspace.Place) string {
	up, err := place.Up()
	if err != nil {
		return ""
	}
	dir := showName(up.Path())
	entries, all, err := up.List(0, 10000)
	switch {
	case err != nil:
		return fmt.Sprintf("; its directory %s does not exist either", dir) + near(up)
	case all == 0:
		return fmt.Sprintf("; its directory %s is empty", dir)
	}
	var names []string
	for _, e := range entries {
		if strings.EqualFold(e.Name, filepath.Base(place.Rel())) {
			return fmt.Sprintf("; in %s there is %s: upper and lower case are not the same", dir, shown(e))
		}
		if len(names) < 20 {
			names = append(names, shown(e))
		}
	}
	if all > len(names) {
		return fmt.Sprintf("; in %s there are %s and %d more", dir, strings.Join(names, ", "), all-len(names))
	}
	return fmt.Sprintf("; in %s there are %s", dir, strings.Join(names, ", "))
}

// shown is an entry's name, with a slash behind it if it is a directory.
func shown(e workspace.Entry) string {
	if e.Kind == "directory" {
		return showName(e.Name) + "/"
	}
	return showName(e.Name)
}

// checkWritable refuses names that cannot be told of without loss: facts are text.
func checkWritable(place workspace.Place, exists bool) error {
	path := place.Path()
	switch {
	case !utf8.ValidString(path):
		return fmt.Errorf("the name %s is not UTF-8; such files are read, and not changed", showName(path))
	case !exists && showName(path) != path:
		return fmt.Errorf("the new name %s has a control character or a backslash before an x; choose another", showName(path))
	}
	return nil
}
