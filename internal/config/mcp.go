package config

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"correx/pkg/events"
)

// An MCP is an MCP server whose tools are offered: a process, or a URL.
type MCP struct {
	Name         string            `yaml:"name"`
	Command      []string          `yaml:"command"`
	URL          string            `yaml:"url"`
	Tools        []string          `yaml:"tools"` // "*": all
	Tier         *events.Tier      `yaml:"tier"`  // nil: T3; of a trusted server T0
	Trust        bool              `yaml:"trust"`
	Environment  []string          `yaml:"environment"`
	Headers      map[string]string `yaml:"headers"` // name to the variable that has the value
	Writable     []string          `yaml:"writable"`
	Readable     []string          `yaml:"readable"`
	Network      bool              `yaml:"network"`
	Timeout      time.Duration     `yaml:"timeout"`
	StartTimeout time.Duration     `yaml:"start_timeout"`
}

// withDefaults fills what a server leaves out.
func (m MCP) withDefaults() MCP {
	if m.Timeout == 0 {
		m.Timeout = time.Minute
	}
	if m.StartTimeout == 0 {
		m.StartTimeout = 15 * time.Second
	}
	return m
}

var (
	serverName   = regexp.MustCompile(`^[A-Za-z0-9-]{1,32}$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	headerName   = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
)

func (f *Faults) mcp(servers []MCP) {
	seen := map[string]bool{}
	for i, m := range servers {
		key := fmt.Sprintf("tools.mcp[%d]", i)
		switch {
		case !serverName.MatchString(m.Name):
			f.add(key+".name", "is %q; use up to 32 letters, digits and hyphens", m.Name)
		case seen[m.Name]:
			f.add(key+".name", "%q stands twice", m.Name)
		}
		seen[m.Name] = true
		switch {
		case len(m.Command) == 0 && m.URL == "":
			f.add(key, "has neither command nor url")
		case len(m.Command) > 0 && m.URL != "":
			f.add(key, "has command and url; a server is one or the other")
		case m.URL != "":
			f.mcpRemote(key, m)
		default:
			f.mcpProcess(key, m)
		}
		for j, t := range m.Tools {
			if t == "" {
				f.add(fmt.Sprintf("%s.tools[%d]", key, j), "is empty")
			}
		}
		f.positive(key+".timeout", m.Timeout)
		f.positive(key+".start_timeout", m.StartTimeout)
	}
}

func (f *Faults) mcpProcess(key string, m MCP) {
	if name := m.Command[0]; name == "" || strings.Contains(name, "/") && !strings.HasPrefix(name, "/") {
		f.add(key+".command", "begins with %q; write the bare name of a program, or its absolute path", name)
	}
	if len(m.Headers) > 0 {
		f.add(key+".headers", "are for servers with a url")
	}
	for i, name := range m.Environment {
		k := fmt.Sprintf("%s.environment[%d]", key, i)
		switch {
		case !variableName.MatchString(name):
			f.add(k, "is no name of a variable; name it here, and give its value to the worker's environment")
		case strings.HasPrefix(name, "LD_") || slices.Contains([]string{"PATH", "HOME", "TMPDIR", "LANG"}, name):
			f.add(k, "is %s, which is never handed on", name)
		}
	}
}

func (f *Faults) mcpRemote(key string, m MCP) {
	u, err := url.Parse(m.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		f.add(key+".url", "must be http://host/path or https://host/path")
	case u.User != nil:
		f.add(key+".url", "has a password in it; give it by headers")
	case u.Scheme == "http" && len(m.Headers) > 0 && !loopback(u.Hostname()):
		f.add(key+".url", "would send headers to another machine in the clear; use https")
	}
	if len(m.Environment) > 0 || len(m.Writable) > 0 || len(m.Readable) > 0 || m.Network {
		f.add(key, "has environment, writable, readable or network, which are for servers with a command")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		switch {
		case !headerName.MatchString(name) || slices.Contains([]string{"Host", "Content-Length"}, http.CanonicalHeaderKey(name)):
			f.add(key+".headers", "has %q, which is no header to set", name)
		case !variableName.MatchString(m.Headers[name]):
			f.add(key+".headers", "of %s must be the name of a variable that has the value; a secret does not belong into this file", name)
		}
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
