package config_test

import (
	"strings"
	"testing"
	"time"

	"correx/pkg/events"
)

func TestMCP_FaultsAreNamed(t *testing.T) {
	_, err := read(t, `
tools:
  mcp:
    - {name: a_b, command: [x]}
    - {name: two, command: [x], url: "https://h/"}
    - {name: two}
    - {name: rel, command: [./x], headers: {A: B}, environment: [LD_PRELOAD, "TOKEN=secret", PATH], timeout: -1s, tools: [""]}
    - {name: web, url: "ftp://h/", network: true}
    - {name: pw, url: "https://u:p@h/", headers: {"A b": X, Authorization: "Bearer 123"}}
    - {name: clear, url: "http://example.com/mcp", headers: {Authorization: TOKEN}}
    - {name: tier, command: [x], tier: T9}
`, nil, nil)
	if err == nil {
		t.Fatal("no fault was found")
	}
	for _, want := range []string{
		`correx.yaml:4: tools.mcp[0].name is "a_b"`, "tools.mcp[1] has command and url", `tools.mcp[2].name "two" stands twice`,
		"tools.mcp[2] has neither command nor url", `tools.mcp[3].command begins with "./x"`, "tools.mcp[3].headers are for servers with a url",
		"tools.mcp[3].environment[0] is LD_PRELOAD", "tools.mcp[3].environment[1] is no name of a variable", "tools.mcp[3].environment[2] is PATH",
		"tools.mcp[3].timeout is -1s", "tools.mcp[3].tools[0] is empty", "tools.mcp[4].url must be http", "tools.mcp[4] has environment",
		"tools.mcp[5].url has a password", `tools.mcp[5].headers has "A b"`, "tools.mcp[5].headers of Authorization must be the name of a variable",
		"tools.mcp[6].url would send headers", `correx.yaml:11: tools.mcp[7].tier tier "T9"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "=secret") || strings.Contains(err.Error(), "Bearer") {
		t.Errorf("a secret is in:\n%v", err)
	}
}

func TestMCP_Defaults(t *testing.T) {
	cfg := mustRead(t, `
tools:
  mcp:
    - {name: a, command: [x], tools: [t], tier: T1, writable: [w]}
    - {name: b, url: "http://127.0.0.1:9/mcp", headers: {X-Key: KEY}}
`, nil, nil)
	a, b := cfg.Tools.MCP[0], cfg.Tools.MCP[1]
	if a.Timeout != time.Minute || a.StartTimeout != 15*time.Second || a.Tier == nil || *a.Tier != events.T1 || !strings.HasPrefix(a.Writable[0], "/") {
		t.Errorf("a is %+v", a)
	}
	if b.Tier != nil || b.Headers["X-Key"] != "KEY" || len(b.Tools) != 0 {
		t.Errorf("b is %+v", b)
	}
}
