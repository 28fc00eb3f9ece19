package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"correx/pkg/events"
	"correx/pkg/tools/patch"
	"correx/pkg/tools/workspace"
)

const (
	maxPatched      = 100      // files that one patch may change
	maxPatchedBytes = 32 << 20 // of all of them together
)

// planPatch says what a patch would make of its files. It reads them, and
// rehearses nothing yet.
func (t *FileEditTool) planPatch(q fileRequest) (fileChanges, error) {
	named, err := t.patched(*q.Patch)
	if err != nil {
		return fileChanges{}, err
	}
	c := fileChanges{meta: map[string]string{}}
	var job rehearsal
	var done []string
	size := 0
	for _, n := range named {
		f, copied, err := n.plan(t.readChange)
		if err != nil {
			return fileChanges{}, fmt.Errorf("%s: %w", n.file.Name, err)
		}
		if size += max(len(f.before.Data), len(f.after)); size > maxPatchedBytes {
			return fileChanges{}, fmt.Errorf("the files of the patch are over %d bytes large together; patch fewer at once", maxPatchedBytes)
		}
		c.files = append(c.files, f)
		job.add(n.file, copied)
		done = append(done, n.done(copied.result))
	}
	c.done = strings.Join(done, "\n")
	c.rehearse = func(ctx context.Context) (events.Isolation, error) {
		isolation, err := t.patcher.rehearse(ctx, job)
		if err != nil {
			err = fmt.Errorf("file_edit: %w", err)
		}
		return isolation, err
	}
	return c, nil
}

// A patchedFile is one file of a patch and its place.
type patchedFile struct {
	file  patch.File
	place workspace.Place
}

// patched reads a patch and finds its files, in the order of their paths. Each is named once, and
// none lies below another.
func (t *FileEditTool) patched(text string) ([]patchedFile, error) {
	p, err := patch.Parse(text)
	if err != nil {
		return nil, err
	}
	if len(p.Files) > maxPatched {
		return nil, fmt.Errorf("the patch names %d files, and %d are allowed", len(p.Files), maxPatched)
	}
	var out []patchedFile
	for _, f := range p.Files {
		place, err := t.patchPlace(f)
		if err != nil {
			return nil, err
		}
		out = append(out, patchedFile{f, place})
	}
	for _, a := range out {
		for _, b := range out {
			switch {
			case a.file.Line < b.file.Line && a.place.Path() == b.place.Path():
				return nil, fmt.Errorf("%s and %s are the same file; put all its hunks below one name", a.file.Name, b.file.Name)
			case strings.HasPrefix(b.place.Path(), a.place.Path()+"/"):
				return nil, fmt.Errorf("%s lies below %s, which is a file by the same patch", b.file.Name, a.file.Name)
			}
		}
	}
	slices.SortFunc(out, func(a, b patchedFile) int { return strings.Compare(a.place.Path(), b.place.Path()) })
	return out, nil
}

func (t *FileEditTool) patchPlace(f patch.File) (workspace.Place, error) {
	if strings.HasSuffix(f.Name, "/") || strings.HasSuffix(f.Name, "/.") {
		return workspace.Place{}, fmt.Errorf("the name %q in the patch is a directory's; give the file's", f.Name)
	}
	if f.Bare {
		prefix := "a"
		if f.Create {
			prefix = "b"
		}
		if dir, err := t.find(prefix); err == nil {
			if fi, err := dir.Stat(); err == nil && fi.IsDir() {
				return workspace.Place{}, fmt.Errorf("%[1]s/%[2]s in the patch can be %[2]s or a file in the directory %[1]s, which exists; write %[2]s, or ./%[1]s/%[2]s", prefix, f.Name)
			}
		}
	}
	return t.find(f.Name)
}

// plan applies the hunks to the file as it is.
func (n patchedFile) plan(readChange func(workspace.Place) (fileChange, error)) (fileChange, patchCopy, error) {
	c, err := readChange(n.place)
	if err != nil {
		return c, patchCopy{}, err
	}
	old := c.before.Data
	if !n.file.Create {
		if _, err := fitText(old, n.added(), false); err != nil {
			return c, patchCopy{}, err
		}
	}
	mark := []byte(nil)
	if bytes.HasPrefix(old, []byte(utf8BOM)) && !strings.Contains(n.added(), utf8BOM) {
		mark, old = old[:len(utf8BOM)], old[len(utf8BOM):]
	}
	result, err := n.file.Apply(old, c.before.Exists)
	var mismatch *patch.MismatchError
	switch {
	case errors.As(err, &mismatch) && !c.before.Exists && !n.file.Create:
		return c, patchCopy{}, fmt.Errorf("%w%s", err, near(n.place))
	case err != nil:
		return c, patchCopy{}, err
	case len(result.Data) > workspace.MaxSize:
		return c, patchCopy{}, fmt.Errorf("it would be %d bytes large, and %d are allowed", len(result.Data), workspace.MaxSize)
	}
	c.after, c.remove = append(bytes.Clone(mark), result.Data...), n.file.Delete
	return c, patchCopy{before: old, existed: c.before.Exists, result: result}, nil
}

// added is all that the patch has of lines.
func (n patchedFile) added() string {
	var b strings.Builder
	for _, h := range n.file.Hunks {
		for _, l := range h.Lines {
			b.WriteString(l.Text)
		}
	}
	return b.String()
}

// done says what became of one file, and which hunks stand elsewhere than the
// patch says.
func (n patchedFile) done(r patch.Result) string {
	switch {
	case n.file.Create:
		return "made " + n.file.Name
	case n.file.Delete:
		return "deleted " + n.file.Name
	}
	var places []string
	for _, p := range r.Places {
		at := fmt.Sprintf("line %d", p.Line)
		switch {
		case p.Offset > 0:
			at += fmt.Sprintf(" (%s further down than it says)", plural(p.Offset, "line"))
		case p.Offset < 0:
			at += fmt.Sprintf(" (%s further up than it says)", plural(-p.Offset, "line"))
		}
		places = append(places, at)
	}
	return fmt.Sprintf("patched %s at %s", n.file.Name, strings.Join(places, ", "))
}

// AffectedPaths implements [FileAffectingTool].
func (t *FileEditTool) AffectedPaths(r events.ToolRequest) []string {
	q, err := t.parse(r)
	if err != nil || q.Patch == nil {
		return t.changer.AffectedPaths(r)
	}
	named, err := t.patched(*q.Patch)
	if err != nil {
		return nil
	}
	var paths []string
	for _, n := range named {
		paths = append(paths, filepath.Clean(n.place.Path()))
	}
	return paths
}

// NeedsDir implements [DirTool]: a patch is rehearsed on copies.
func (t *FileEditTool) NeedsDir(r events.ToolRequest) bool {
	q, err := t.parse(r)
	return err == nil && q.Patch != nil
}
