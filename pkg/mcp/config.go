package mcp

import (
	"log/slog"
	"time"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// A Server is one MCP server, started as a process or reached by HTTP.
type Server struct {
	Name         string            // letters, digits and hyphens
	Command      []string          // of a server on standard input and output
	URL          string            // of a server on streamable HTTP
	Environment  []string          // names of variables that the process gets
	Headers      map[string]string // of HTTP requests: name to the variable that has the value
	Writable     []string          // directories, beside its own
	Readable     []string
	Network      bool          // the process may reach the network
	Timeout      time.Duration // of a call
	StartTimeout time.Duration // until its tools are known
	Tier         *events.Tier  // the least of its tools; nil: T3, or of a trusted server T0
	Trust        bool          // what it says about its tools is believed
	Tools        []string      // names of the tools that are offered; "*": all
}

// Options are what [Start] needs.
type Options struct {
	Servers   []Server
	Starter   tools.Starter               // of processes
	Isolation events.Isolation            // that they get
	Dir       string                      // a server's own directory is Dir/<name>
	Version   string                      // of this program
	Lookup    func(string) (string, bool) // variables
	Logger    *slog.Logger
}

const (
	// maxMessage is the largest message of a server, in bytes.
	maxMessage = 16 << 20
	// maxTools is how many tools a server may list.
	maxTools = 1000
	// closing is how long a server may take to end by itself.
	closing = 2 * time.Second
	// lateness is how long a call may outlast its deadline before the server
	// counts as stuck.
	lateness = 2 * time.Second
)

func (s Server) withDefaults() Server {
	if s.Timeout <= 0 {
		s.Timeout = time.Minute
	}
	if s.StartTimeout <= 0 {
		s.StartTimeout = 15 * time.Second
	}
	return s
}
