package toolworker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// A testTool writes a line for each time it runs. Its parameters say how long it
// takes, and what it answers.
type testTool struct {
	name    string
	touches bool
	ledger  string // a file; a line is "name invocation"
}

type testParams struct {
	Millis int    `json:"millis"`
	Fail   string `json:"fail"`
	Size   int    `json:"size"`
	Bad    bool   `json:"bad"`
	Panic  bool   `json:"panic"`
	Asks   bool   `json:"asks"` // for a follow-up
}

func (t testTool) Name() string                 { return t.name }
func (t testTool) Description() string          { return "counts its runs" }
func (t testTool) Tier() events.Tier            { return events.T0 }
func (t testTool) Example() *events.ToolExample { return nil }
func (t testTool) ParametersSchema() events.Raw { return events.Raw(`{"type":"object"}`) }

func (t testTool) RequiredCapabilities() []events.ToolCapability {
	if t.touches {
		return []events.ToolCapability{events.FileWrite}
	}
	return nil
}

func (t testTool) ValidateRequest(r events.ToolRequest) tools.ValidationResult {
	var p testParams
	if err := json.Unmarshal(r.Parameters, &p); err != nil {
		return tools.Invalid("%v", err)
	}
	if p.Bad {
		return tools.Invalid("these parameters are bad")
	}
	return tools.Valid()
}

// Execute implements tools.Executor.
func (t testTool) Execute(ctx context.Context, r events.ToolRequest) tools.ToolResult {
	var p testParams
	if err := json.Unmarshal(r.Parameters, &p); err != nil {
		return tools.Failure{Invocation: r.Invocation, Reason: err.Error()}
	}
	if err := t.write(string(r.Invocation)); err != nil {
		return tools.Failure{Invocation: r.Invocation, Reason: err.Error()}
	}
	if p.Panic {
		panic("as asked")
	}
	select {
	case <-time.After(time.Duration(p.Millis) * time.Millisecond):
	case <-ctx.Done():
		return tools.Failure{Invocation: r.Invocation, Reason: "interrupted", Recoverable: true}
	}
	if p.Fail != "" {
		return tools.Failure{Invocation: r.Invocation, Reason: p.Fail, Output: "partial"}
	}
	if p.Size > 0 {
		return tools.Success{Invocation: r.Invocation, Output: strings.Repeat("x", p.Size)}
	}
	s := tools.Success{Invocation: r.Invocation, Output: "ran " + t.name}
	if p.Asks {
		s.FollowUp = &events.FollowUp{Tool: "second", Parameters: r.Parameters}
	}
	return s
}

func (t testTool) write(invocation string) error {
	f, err := os.OpenFile(t.ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s\n", t.name, invocation)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// scribble writes a file, and then fails if it is told to.
type scribble struct{ testTool }

type scribbleParams struct {
	Path string `json:"path"`
	Fail string `json:"fail"`
}

func (s scribble) params(r events.ToolRequest) (p scribbleParams) {
	_ = json.Unmarshal(r.Parameters, &p)
	return p
}

// AffectedPaths implements tools.FileAffectingTool.
func (s scribble) AffectedPaths(r events.ToolRequest) []string { return []string{s.params(r).Path} }

// Execute implements tools.Executor.
func (s scribble) Execute(_ context.Context, r events.ToolRequest) tools.ToolResult {
	p := s.params(r)
	if err := os.WriteFile(p.Path, []byte(r.Invocation), 0o600); err != nil {
		return tools.Failure{Invocation: r.Invocation, Reason: err.Error()}
	}
	if p.Fail != "" {
		return tools.Failure{Invocation: r.Invocation, Reason: p.Fail}
	}
	return tools.Success{Invocation: r.Invocation, Output: "written"}
}

// runs counts the lines of the ledger by invocation.
func runs(t testing.TB, ledger string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(ledger)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	n := map[string]int{}
	for line := range strings.Lines(string(data)) {
		_, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		n[id]++
	}
	return n
}

// toolset is what the test workers offer: a tool that touches something that
// cannot be taken back, one that touches nothing, and files.
func toolset(dir string) ([]tools.Tool, error) {
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return nil, err
	}
	list, err := tools.Build(tools.Config{FileWrite: tools.FileWriteConfig{Enabled: true, AllowedPaths: []string{files}}})
	if err != nil {
		return nil, err
	}
	ledger := filepath.Join(dir, "ledger")
	return append(list, testTool{"count", true, ledger}, testTool{"peek", false, ledger}, scribble{testTool{"scribble", true, ledger}}), nil
}
