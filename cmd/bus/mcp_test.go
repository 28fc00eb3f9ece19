package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const mcpServerArg = "be-an-mcp-server"

type noteArgs struct {
	Text string `json:"text"`
	Path string `json:"path"`
}

// mcpServer is a server on standard input and output with two tools.
func mcpServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "writes a note"}, func(_ context.Context, _ *mcp.CallToolRequest, a noteArgs) (*mcp.CallToolResult, any, error) {
		if err := os.WriteFile(a.Path, []byte(a.Text), 0o600); err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noted " + a.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "quit", Description: "ends"}, func(context.Context, *mcp.CallToolRequest, noteArgs) (*mcp.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "ink is out")
		os.Exit(4)
		return nil, nil, nil
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{}) // until its input ends
}

// TestMCP takes a server's tool the whole way: announced, asked for, approved by a
// person, run, and its receipt on the log.
func TestMCP(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := newMachineWith(t, map[string]string{
		"CORREX_TOOLS_MCP": fmt.Sprintf(`[{name: notes, command: [%q, %s], tools: [add, quit], tier: T2}]`, self, mcpServerArg),
	})
	m.want(m.run("replay", "--kind", "worker", "--json"), 0, `"name":"notes_add"`, `"name":"notes_quit"`, `"origin":"mcp:notes"`)
	add := func(path string) string {
		return fmt.Sprintf(`{"text":"milk","path":%q}`, path)
	}
	own := filepath.Join(m.state, "tool-worker", "w1", "mcp", "notes", "a")
	t.Run("rejected", func(t *testing.T) {
		m.want(m.do(call{args: []string{"request", "notes_add", add(own)}, keys: says("r:not now")}), 4, "not now")
		if _, err := os.Stat(own); err == nil {
			t.Error("it ran")
		}
	})
	t.Run("approved", func(t *testing.T) {
		m.want(m.do(call{args: []string{"request", "notes_add", add(own), "--invocation", "i1"}, keys: says("a")}), 0, "noted milk")
		if got, err := os.ReadFile(own); err != nil || string(got) != "milk" {
			t.Errorf("the note has %q (%v)", got, err)
		}
		o := m.want(m.run("replay", "--kind", "tool", "--json"), 0, `"mcp_server":"notes"`, `"mcp_tool":"add"`)
		if n := strings.Count(o.stdout, `"mcp_tool":"add"`); n != 1 {
			t.Errorf("%d receipts", n)
		}
	})
	t.Run("not as the schema says", func(t *testing.T) {
		m.want(m.do(call{args: []string{"request", "notes_add", `{"text":1}`}, keys: says("a")}), 1, "text is number, not string")
	})
	t.Run("the server ends", func(t *testing.T) {
		m.want(m.do(call{args: []string{"request", "notes_quit", add(own)}, keys: says("a")}), 1, "exit code 4", "ink is out")
		m.want(m.do(call{args: []string{"request", "notes_add", add(own)}, keys: says("a")}), 0, "noted milk")
	})
}
