package tools_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

func TestMain(m *testing.M) {
	os.Exit(m.Run())
}

// request is a call of a tool with parameters in the order given.
func request(t *testing.T, tool string, params any) events.ToolRequest {
	t.Helper()
	raw, ok := params.(string)
	if !ok {
		b, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(b)
	}
	return events.ToolRequest{Invocation: "t1-0", Session: "s1", Stage: "turn-1", Tool: tool, Parameters: events.Raw(raw)}
}

type p map[string]any

// build makes the tools of a configuration, each by its name.
func build(t *testing.T, c tools.Config) map[string]tools.Tool {
	t.Helper()
	if c.Runner == nil {
		runner, err := sandbox.NewRunner(sandbox.RunnerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.Runner = runner
	}
	list, err := tools.Build(c)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]tools.Tool{}
	for _, tool := range list {
		m[tool.Name()] = tool
	}
	return m
}

func run(t *testing.T, tool tools.Tool, params any) tools.ToolResult {
	t.Helper()
	return tool.(tools.Executor).Execute(context.Background(), request(t, tool.Name(), params))
}

func wantSuccess(t *testing.T, r tools.ToolResult, output string) {
	t.Helper()
	s, ok := r.(tools.Success)
	if !ok {
		t.Fatalf("got %+v, want success", r)
	}
	if s.Output != output {
		t.Fatalf("output %q, want %q", s.Output, output)
	}
	if s.Invocation != "t1-0" {
		t.Fatalf("invocation %q", s.Invocation)
	}
}

// wantFailure expects a failure that is not recoverable, and parts of its reason.
func wantFailure(t *testing.T, r tools.ToolResult, parts ...string) tools.Failure {
	t.Helper()
	f, ok := r.(tools.Failure)
	if !ok {
		t.Fatalf("got %+v, want failure", r)
	}
	for _, part := range parts {
		if !strings.Contains(f.Reason, part) {
			t.Fatalf("reason %q does not have %q", f.Reason, part)
		}
	}
	if f.Recoverable {
		t.Fatalf("%q is recoverable", f.Reason)
	}
	return f
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// realDir is a temporary directory without symbolic links in its path.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
