package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

// A FileEditTool changes a part of a file: it appends to it, or replaces what
// occurs in it exactly once.
type FileEditTool struct{ changer }

func newFileEdit(c FileEditConfig) (*FileEditTool, error) {
	f, err := openFiles("file_edit", c.AllowedPaths, operation{"append", []string{"content"}}, operation{"replace", []string{"target", "replacement"}})
	if err != nil {
		return nil, err
	}
	return &FileEditTool{changer{files: f, tier: events.T3, plan: planEdit}}, nil
}

func planEdit(p fileParameters, place workspace.Place) (fileChange, error) {
	c, err := readChange(p, place)
	if err != nil {
		return c, err
	}
	if !c.before.Exists {
		return c, fmt.Errorf("there is no file %s to edit; write it first", p.Path)
	}
	switch p.Operation {
	case "append":
		content := likeFile(c.before.Data, *p.Content)
		if content == "" {
			return c, errors.New("content is empty; there is nothing to append")
		}
		c.after = append(bytes.Clone(c.before.Data), content...)
		c.done = fmt.Sprintf("appended %d bytes to %s", len(content), p.Path)
	case "replace":
		line, after, err := replaceOnce(c.before.Data, *p.Target, *p.Replacement)
		if err != nil {
			return c, fmt.Errorf("%s: %w", p.Path, err)
		}
		c.after = after
		c.done = fmt.Sprintf("replaced the text at line %d of %s", line, p.Path)
	}
	if len(c.after) > workspace.MaxSize {
		return c, fmt.Errorf("%s would be %d bytes large, and %d are allowed", p.Path, len(c.after), workspace.MaxSize)
	}
	return c, nil
}

// allCRLF reports whether every line of data ends in CR LF, and some does.
func allCRLF(data []byte) bool {
	n := bytes.Count(data, []byte("\n"))
	return n > 0 && n == bytes.Count(data, []byte("\r\n"))
}

// likeFile gives text the line ends of a file that has CR LF throughout.
func likeFile(data []byte, text string) string {
	if allCRLF(data) && !strings.Contains(text, "\r") {
		return strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// replaceOnce replaces target, which must occur exactly once; occurrences that
// overlap count. It returns the line at which it did.
func replaceOnce(data []byte, target, replacement string) (line int, after []byte, err error) {
	switch {
	case target == "":
		return 0, nil, errors.New("target is empty; give the text that is to be replaced")
	case target == replacement:
		return 0, nil, errors.New("target and replacement are equal; nothing would change")
	}
	at := occurrences(data, target)
	if len(at) == 0 {
		if t := likeFile(data, target); t != target {
			target, replacement = t, likeFile(data, replacement)
			at = occurrences(data, target)
		}
	}
	switch len(at) {
	case 0:
		return 0, nil, notFound(data, target)
	case 1:
		after = append(after, data[:at[0]]...)
		after = append(after, replacement...)
		return lineOf(data, at[0]), append(after, data[at[0]+len(target):]...), nil
	}
	return 0, nil, fmt.Errorf("target occurs %d times, at lines %s; give more of the text around the one that is meant, so that it occurs once", len(at), linesOf(data, at))
}

// occurrences returns where target begins, overlapping ones too.
func occurrences(data []byte, target string) []int {
	var at []int
	for from := 0; ; {
		i := bytes.Index(data[from:], []byte(target))
		if i < 0 {
			return at
		}
		at = append(at, from+i)
		from += i + 1
	}
}

func lineOf(data []byte, at int) int { return 1 + bytes.Count(data[:at], []byte("\n")) }

// linesOf names the lines of the first twenty places.
func linesOf(data []byte, at []int) string {
	var names []string
	for _, a := range at[:min(len(at), 20)] {
		names = append(names, fmt.Sprint(lineOf(data, a)))
	}
	if len(at) > 20 {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// notFound says what comes near the target: lines that differ from its first one
// in white space or case only.
func notFound(data []byte, target string) error {
	lines := strings.Split(string(data), "\n")
	first := fold(strings.Split(strings.TrimSpace(target), "\n")[0])
	var near []string
	for i, l := range lines {
		if first != "" && strings.Contains(fold(l), first) && len(near) < 3 {
			near = append(near, fmt.Sprintf("line %d: %.200q", i+1, strings.TrimSuffix(l, "\r")))
		}
	}
	if len(near) == 0 {
		return fmt.Errorf("target does not occur in its %d lines; read the file and copy the text exactly", len(lines))
	}
	return fmt.Errorf("target does not occur exactly so; nearest, apart from white space, case or the lines after: %s; copy the text exactly", strings.Join(near, "; "))
}

func fold(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// Description implements [Tool].
func (*FileEditTool) Description() string {
	return "Changes a part of an existing text file: appends to its end, or replaces a text that occurs in it exactly once."
}

// ParametersSchema implements [Tool].
func (*FileEditTool) ParametersSchema() events.Raw { return fileEditSchema }

// Example implements [Tool].
func (*FileEditTool) Example() *events.ToolExample {
	return &events.ToolExample{
		Task:       "In notes/a.txt, replace the word alpha by beta.",
		Parameters: events.Raw(`{"operation":"replace","path":"notes/a.txt","target":"alpha","replacement":"beta"}`),
		Result:     "replaced the text at line 1 of notes/a.txt",
		Answer:     "I replaced alpha by beta in notes/a.txt.",
	}
}

// ValidateRequest implements [Tool].
func (t *FileEditTool) ValidateRequest(r events.ToolRequest) ValidationResult {
	if _, err := t.change(r); err != nil {
		return Invalid("%v", err)
	}
	return Valid()
}

// Preview implements [Previewer].
func (t *FileEditTool) Preview(_ context.Context, r events.ToolRequest) Preview {
	c, err := t.change(r)
	if err != nil {
		return Preview{Reason: err.Error(), Tier: t.tier}
	}
	return c.preview(t.tier)
}

// Execute implements [Executor].
func (t *FileEditTool) Execute(ctx context.Context, r events.ToolRequest) ToolResult {
	c, err := t.change(r)
	if err != nil {
		return fail(r, err.Error())
	}
	return c.apply(ctx, r)
}
