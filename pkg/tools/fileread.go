package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

const (
	maxRead  = 1 << 20  // bytes of a file that is told whole
	maxRange = 48 << 10 // bytes of lines that are told when some are asked for
	maxList  = 1000     // entries of a directory that are told at once
)

// A FileReadTool reads files, lists directories, and tells what is at a path. It
// affects nothing.
type FileReadTool struct{ files }

func newFileRead(c FileReadConfig) (*FileReadTool, error) {
	path, some := []string{"path"}, []string{"offset", "limit"}
	f, err := openFiles("file_read", c.AllowedPaths,
		operation{name: "read", needs: path, takes: some}, operation{name: "list", needs: path, takes: some, dirs: true},
		operation{name: "exists", needs: path, dirs: true}, operation{name: "stat", needs: path, dirs: true})
	if err != nil {
		return nil, err
	}
	return &FileReadTool{f}, nil
}

// Description implements [Tool].
func (*FileReadTool) Description() string {
	return "Reads a text file or some of its lines, lists a directory, tells whether a path exists, or what is there."
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
	if _, err := t.check(r); err != nil {
		return Invalid("%s", visible(err.Error()))
	}
	return Valid()
}

func (t *FileReadTool) check(r events.ToolRequest) (fileRequest, error) {
	q, err := t.parse(r)
	switch {
	case err != nil:
		return q, err
	case q.Offset != nil && *q.Offset < 1:
		return q, fmt.Errorf("file_read: offset is %d; lines are counted from 1", *q.Offset)
	case q.Limit != nil && *q.Limit < 1:
		return q, fmt.Errorf("file_read: limit is %d; give how many are wanted, 1 or more", *q.Limit)
	}
	return q, nil
}

// Execute implements [Executor].
func (t *FileReadTool) Execute(_ context.Context, r events.ToolRequest) ToolResult {
	q, err := t.check(r)
	if err != nil {
		return fail(r, visible(err.Error()))
	}
	answer := map[string]func(fileRequest) (Success, error){
		"exists": exists, "list": list, "stat": statFile, "read": read,
	}[q.Operation]
	s, err := answer(q)
	if err != nil {
		return fail(r, visible("file_read: "+err.Error()))
	}
	s.Invocation = r.Invocation
	return s
}

func exists(q fileRequest) (Success, error) {
	fi, err := q.place.Stat()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Success{}, err
	}
	return Success{Output: strconv.FormatBool(err == nil && (!q.isDir || fi.IsDir()))}, nil
}

// nothing says that there is nothing at a place.
func nothing(kind string, q fileRequest) error {
	return fmt.Errorf("there is no %s %s%s%s", kind, q.asked, leads(q.asked, q.place), near(q.place))
}

func read(q fileRequest) (Success, error) {
	limit := int64(maxRead)
	if q.Offset != nil || q.Limit != nil {
		limit = workspace.MaxSize
	}
	file, err := q.place.Look(limit)
	switch {
	case errors.Is(err, workspace.ErrTooLarge) && limit == maxRead:
		return Success{}, fmt.Errorf("%w; read some of its lines, with offset and limit, if it is not over %d bytes", err, workspace.MaxSize)
	case err != nil:
		if fi, statErr := q.place.Stat(); statErr == nil && fi.IsDir() {
			return Success{}, fmt.Errorf("%s is a directory; use the operation list", q.asked)
		}
		return Success{}, err
	case !file.Exists:
		return Success{}, nothing("file", q)
	}
	t := readText(file.Data)
	if t.encoding == asBinary {
		return Success{}, fmt.Errorf("%s is binary (%d bytes, SHA-256 %s) and cannot be shown as text", q.asked, file.Size, file.SHA256)
	}
	text, err := t.show(q)
	if err != nil {
		return Success{}, err
	}
	return Success{Output: text, Metadata: map[string]string{
		"path": showName(q.place.Path()), "size": strconv.FormatInt(file.Size, 10), "sha256": file.SHA256,
		"lines": strconv.Itoa(t.lines), "encoding": string(t.encoding), "line_ends": t.ends,
	}}, nil
}
