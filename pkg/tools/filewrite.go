package tools

import (
	"context"
	"fmt"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// A FileWriteTool writes whole files and deletes them.
type FileWriteTool struct{ changer }

func newFileWrite(c FileWriteConfig) (*FileWriteTool, error) {
	f, err := openFiles("file_write", c.AllowedPaths, operation{"write", []string{"content"}}, operation{"delete", nil})
	if err != nil {
		return nil, err
	}
	return &FileWriteTool{changer{files: f, tier: events.T2, plan: planWrite}}, nil
}

func planWrite(p fileParameters, place workspace.Place) (fileChange, error) {
	c, err := readChange(p, place)
	if err != nil {
		return c, err
	}
	if p.Operation == "delete" {
		if !c.before.Exists {
			return c, fmt.Errorf("there is no file %s to delete", p.Path)
		}
		c.remove, c.done = true, "deleted "+p.Path
		return c, nil
	}
	c.after = []byte(*p.Content)
	c.done = fmt.Sprintf("wrote %d bytes to %s", len(c.after), p.Path)
	return c, nil
}

// Description implements [Tool].
func (*FileWriteTool) Description() string {
	return "Writes a whole text file, making it and its directories if need be, or deletes a file."
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

// ValidateRequest implements [Tool].
func (t *FileWriteTool) ValidateRequest(r events.ToolRequest) ValidationResult {
	if _, err := t.change(r); err != nil {
		return Invalid("%v", err)
	}
	return Valid()
}

// Preview implements [Previewer].
func (t *FileWriteTool) Preview(_ context.Context, r events.ToolRequest) Preview {
	c, err := t.change(r)
	if err != nil {
		return Preview{Reason: err.Error(), Tier: t.tier}
	}
	return c.preview(t.tier)
}

// Execute implements [Executor].
func (t *FileWriteTool) Execute(ctx context.Context, r events.ToolRequest) ToolResult {
	c, err := t.change(r)
	if err != nil {
		return fail(r, err.Error())
	}
	return c.apply(ctx, r)
}
