package mcp

import (
	"os"
	"testing"

	"correx/pkg/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Stage()
	if os.Getenv("MCP_TEST_SERVER") != "" {
		serve(os.Args[1])
		return
	}
	os.Exit(m.Run())
}
