package mcp

import (
	"os"
	"testing"

	"correx/pkg/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Stage()
	if kind := os.Getenv("MCP_TEST_SERVER"); kind != "" {
		serve(kind)
		return
	}
	os.Exit(m.Run())
}
