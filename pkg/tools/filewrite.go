package tools

import (
	"errors"
	"fmt"
	"io/fs"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// A FileWriteTool writes whole files, deletes them, and makes directories.
type FileWriteTool struct{ changer }

func newFileWrite(c Config) (*FileWriteTool, error) {
	f, err := openFiles("file_write", c.FileWrite.AllowedPaths,
		operation{name: "write", needs: []string{"path", "content"}}, operation{name: "delete", needs: []string{"path"}},
		operation{name: "mkdir", needs: []string{"path"}, dirs: true})
	if err != nil {
		return nil, err
	}
	t := &FileWriteTool{changer{files: f, tier: events.T2, protected: c.Protected}}
	t.plan = t.planWrite
	return t, nil
}

func (t *FileWriteTool) planWrite(q fileRequest) (fileChanges, error) {
	if q.Operation == "mkdir" {
		return t.planMkdir(q)
	}
	c, err := t.readChange(q.place)
	if err != nil {
		return fileChanges{}, err
	}
	if q.Operation == "delete" {
		if !c.before.Exists {
			return fileChanges{}, fmt.Errorf("there is no file %s to delete%s%s", q.asked, leads(q.asked, q.place), near(q.place))
		}
		c.remove = true
		return one(c, "deleted "+q.asked), nil
	}
	text, err := fitText(c.before.Data, *q.Content, true)
	if err != nil {
		return fileChanges{}, fmt.Errorf("%s: %w", q.asked, err)
	}
	c.after = []byte(text)
	done := fmt.Sprintf("wrote %d bytes to %s", len(c.after), q.asked)
	switch {
	case c.empty():
		done = q.asked + " has exactly this content already"
	case text != *q.Content:
		done += ", with the line ends and the byte order mark that it had"
	}
	return one(c, done), nil
}

// planMkdir makes a directory. That it is there already is as good.
func (t *FileWriteTool) planMkdir(q fileRequest) (fileChanges, error) {
	fi, err := q.place.Stat()
	switch {
	case err == nil && fi.IsDir():
		return fileChanges{done: q.asked + " is a directory already", meta: map[string]string{"path": q.place.Path()}}, nil
	case err == nil:
		return fileChanges{}, fmt.Errorf("%s exists and is a %s, so it cannot be made a directory", q.asked, workspace.KindOf(fi))
	case !errors.Is(err, fs.ErrNotExist):
		return fileChanges{}, err
	}
	c, err := t.readChange(q.place)
	if err != nil {
		return fileChanges{}, err
	}
	c.mkdir = true
	return one(c, "made the directory "+q.asked), nil
}

// one is the change of a single file.
func one(c fileChange, done string) fileChanges {
	meta := map[string]string{"path": c.place.Path()}
	if !c.remove && !c.mkdir {
		meta["sha256"] = workspace.Hash(c.after)
	}
	return fileChanges{files: []fileChange{c}, done: done, meta: meta}
}

// AffectedPaths implements [FileAffectingTool].
func (t *FileWriteTool) AffectedPaths(r events.ToolRequest) []string {
	if q, err := t.parse(r); err == nil && q.Operation == "mkdir" {
		if _, err := q.place.Stat(); err == nil {
			return nil // it is there, and nothing will be done
		}
	}
	return t.changer.AffectedPaths(r)
}

// Description implements [Tool].
func (*FileWriteTool) Description() string {
	return "Writes a whole text file, making it and its directories if need be, deletes a file, or makes a directory."
}

// ParametersSchema implements [Tool].
func (*FileWriteTool) ParametersSchema() events.Raw { return fileWriteSchema }

// Example implements [Tool].
func (*FileWriteTool) Example() *events.ToolExample {
	return &events.ToolExample{
		Task:       "Write the word alpha to notes/a.txt.",
		Parameters: events.Raw(`{"operation":"write","path":"notes/a.txt","content":"alpha"}`),
		Result:     "wrote 5 bytes to notes/a.txt",
		Answer:     "I wrote the word alpha to notes/a.txt.",
	}
}
