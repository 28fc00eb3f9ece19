package mcp

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("MCP_TEST_SERVER") != "" {
		serve(os.Args[1])
		return
	}
	os.Exit(m.Run())
}
