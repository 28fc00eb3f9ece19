package tools

import (
	"bytes"
	"errors"
	"fmt"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// A FileEditTool changes parts of files: it appends, replaces what occurs in a
// file exactly once, and applies patches.
type FileEditTool struct {
	changer
	patcher patcher
}

func newFileEdit(c Config) (*FileEditTool, error) {
	p := newPatcher(c)
	f, err := openFiles("file_edit", c.FileEdit.AllowedPaths,
		operation{name: "append", needs: []string{"path", "content"}},
		operation{name: "replace", needs: []string{"path", "target", "replacement"}},
		operation{name: "patch", needs: []string{"patch"}, off: p.off})
	if err != nil {
		return nil, err
	}
	t := &FileEditTool{changer: changer{files: f, tier: events.T3, protected: c.Protected}, patcher: p}
	t.plan = func(q fileRequest) (fileChanges, error) {
		if q.Operation == "patch" {
			return t.planPatch(q)
		}
		return t.planEdit(q)
	}
	return t, nil
}

func (t *FileEditTool) planEdit(q fileRequest) (fileChanges, error) {
	c, err := t.readChange(q.place)
	if err != nil {
		return fileChanges{}, err
	}
	if !c.before.Exists {
		return fileChanges{}, fmt.Errorf("there is no file %s to edit%s%s; write it first, with file_write", q.asked, leads(q.asked, q.place), near(q.place))
	}
	var done string
	switch q.Operation {
	case "append":
		done, err = c.append(q)
	case "replace":
		done, err = c.replace(q)
	}
	if err != nil {
		return fileChanges{}, fmt.Errorf("%s: %w", q.asked, err)
	}
	if len(c.after) > workspace.MaxSize {
		return fileChanges{}, fmt.Errorf("%s would be %d bytes large, and %d are allowed", q.asked, len(c.after), workspace.MaxSize)
	}
	return one(c, done), nil
}

func (c *fileChange) append(q fileRequest) (string, error) {
	if *q.Content == "" {
		return "", errors.New("content is empty; there is nothing to append")
	}
	content, err := fitText(c.before.Data, *q.Content, false)
	if err != nil {
		return "", err
	}
	c.after = append(bytes.Clone(c.before.Data), content...)
	done := fmt.Sprintf("appended %d bytes to %s", len(content), q.asked)
	if n := len(c.before.Data); n > 0 && c.before.Data[n-1] != '\n' {
		done += ", behind the last line, which no newline ended"
	}
	return done, nil
}

func (c *fileChange) replace(q fileRequest) (string, error) {
	if _, err := fitText(c.before.Data, *q.Target+*q.Replacement, false); err != nil {
		return "", err
	}
	line, after, err := replaceOnce(c.before.Data, *q.Target, *q.Replacement)
	if err != nil {
		return "", err
	}
	c.after = after
	return fmt.Sprintf("replaced the text at line %d of %s", line, q.asked), nil
}

// Description implements [Tool].
func (t *FileEditTool) Description() string {
	const two = "Changes a part of an existing text file: appends to its end, or replaces a text that occurs in it exactly once."
	if t.patcher.off != "" {
		return two
	}
	return two + " Or applies a unified diff, which may change, make and delete several files."
}

// ParametersSchema implements [Tool].
func (t *FileEditTool) ParametersSchema() events.Raw {
	if t.patcher.off != "" {
		return fileEditSchema
	}
	return fileEditPatchSchema
}

// Example implements [Tool].
func (*FileEditTool) Example() *events.ToolExample {
	return &events.ToolExample{
		Task:       "In notes/a.txt, replace the word alpha by beta.",
		Parameters: events.Raw(`{"operation":"replace","path":"notes/a.txt","target":"alpha","replacement":"beta"}`),
		Result:     "replaced the text at line 1 of notes/a.txt",
		Answer:     "I replaced alpha by beta in notes/a.txt.",
	}
}
