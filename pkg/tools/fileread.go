package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode/utf8"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

const (
	maxRead = 1 << 20 // bytes of a file that are told
	maxList = 1000    // names of a directory that are told
)

// A FileReadTool reads files, lists directories and looks whether something is
// there. It affects nothing.
type FileReadTool struct{ files }

func newFileRead(c FileReadConfig) (*FileReadTool, error) {
	f, err := openFiles("file_read", c.AllowedPaths, operation{name: "read"}, operation{name: "list"}, operation{name: "exists"})
	if err != nil {
		return nil, err
	}
	return &FileReadTool{f}, nil
}

// Description implements [Tool].
func (*FileReadTool) Description() string {
	return "Reads a text file, lists a directory, or tells whether a path exists."
}

// Tier implements [Tool].
func (*FileReadTool) Tier() events.Tier { return events.T1 }

// RequiredCapabilities implements [Tool].
func (*FileReadTool) RequiredCapabilities() []events.ToolCapability {
	return []events.ToolCapability{events.FileRead}
}

// ParametersSchema implements [Tool].
func (*FileReadTool) ParametersSchema() events.Raw { return fileReadSchema }

// Example implements [Tool].
func (*FileReadTool) Example() *events.ToolExample {
	return &events.ToolExample{
		Task:       "Read notes/a.txt back.",
		Parameters: events.Raw(`{"operation":"read","path":"notes/a.txt"}`),
		Result:     "alpha",
		Answer:     "notes/a.txt contains the word alpha.",
	}
}

// AffectedPaths is empty: reading needs no backup.
func (*FileReadTool) AffectedPaths(events.ToolRequest) []string { return nil }

// ValidateRequest implements [Tool].
func (t *FileReadTool) ValidateRequest(r events.ToolRequest) ValidationResult {
	if _, _, err := t.parse(r); err != nil {
		return Invalid("%v", err)
	}
	return Valid()
}

// Execute implements [Executor].
func (t *FileReadTool) Execute(_ context.Context, r events.ToolRequest) ToolResult {
	p, place, err := t.parse(r)
	if err != nil {
		return fail(r, err.Error())
	}
	switch p.Operation {
	case "exists":
		return t.exists(r, place)
	case "list":
		return t.list(r, p, place)
	}
	return t.read(r, p, place)
}

func (t *FileReadTool) exists(r events.ToolRequest, place workspace.Place) ToolResult {
	_, err := place.Stat()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(r, fmt.Sprintf("file_read: %v", err))
	}
	return Success{Invocation: r.Invocation, Output: strconv.FormatBool(err == nil)}
}

func (t *FileReadTool) list(r events.ToolRequest, p fileParameters, place workspace.Place) ToolResult {
	names, more, err := place.List(maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(r, fmt.Sprintf("file_read: there is no directory %s%s", p.Path, t.near(place)))
	}
	if err != nil {
		return fail(r, fmt.Sprintf("file_read: %v", err))
	}
	text := strings.Join(names, "\n")
	if more > 0 {
		text += fmt.Sprintf("\n[… %d more names]", more)
	}
	if len(names) == 0 {
		text = "(the directory is empty)"
	}
	return Success{Invocation: r.Invocation, Output: text, Metadata: map[string]string{
		"path": place.Path(), "entries": strconv.Itoa(len(names) + more),
	}}
}

func (t *FileReadTool) read(r events.ToolRequest, p fileParameters, place workspace.Place) ToolResult {
	file, err := place.Look(maxRead)
	switch {
	case err != nil:
		if fi, statErr := place.Stat(); statErr == nil && fi.IsDir() {
			return fail(r, fmt.Sprintf("file_read: %s is a directory; use the operation list", p.Path))
		}
		return fail(r, fmt.Sprintf("file_read: %v", err))
	case !file.Exists:
		return fail(r, fmt.Sprintf("file_read: there is no file %s%s", p.Path, t.near(place)))
	}
	meta := map[string]string{"path": place.Path(), "size": strconv.FormatInt(file.Size, 10), "sha256": file.SHA256}
	if !utf8.Valid(file.Data) {
		meta["encoding"] = "binary"
	}
	return Success{Invocation: r.Invocation, Output: string(file.Data), Metadata: meta}
}

// near says what there is in the directory of a place where nothing is.
func (t *FileReadTool) near(place workspace.Place) string {
	up, err := place.Up()
	if err != nil {
		return ""
	}
	names, more, err := up.List(20)
	switch {
	case err != nil:
		return fmt.Sprintf("; its directory %s does not exist either", up.Path())
	case len(names) == 0:
		return fmt.Sprintf("; its directory %s is empty", up.Path())
	case more > 0:
		return fmt.Sprintf("; in %s there are %s and %d more", up.Path(), strings.Join(names, ", "), more)
	}
	return fmt.Sprintf("; in %s there are %s", up.Path(), strings.Join(names, ", "))
}
