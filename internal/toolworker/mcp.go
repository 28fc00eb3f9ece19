package toolworker

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"correx/internal/config"
	"correx/internal/workerhome"
	"correx/pkg/events"
	"correx/pkg/mcp"
	"correx/pkg/tools"
)

// servers starts the configured MCP servers when it is called, and returns their
// tools and what ends them. It is nil if there are none.
func servers(cfg config.Config, home *workerhome.Home, runner tools.Runner, logger *slog.Logger) (func(context.Context) ([]tools.Tool, func()), error) {
	if len(cfg.Tools.MCP) == 0 {
		return nil, nil
	}
	starter, ok := runner.(tools.Starter)
	o := mcp.Options{
		Starter: starter, Isolation: runner.Isolation(), Dir: filepath.Join(home.Dir, "mcp"), Logger: logger,
	}
	for _, m := range cfg.Tools.MCP {
		switch least := cfg.Tools.Sandbox.MinLevel; {
		case m.URL == "" && !ok:
			return nil, fmt.Errorf("MCP server %s: this runner starts no processes that are spoken to", m.Name)
		case m.URL == "" && o.Isolation.Rank() < least.Rank():
			logger.Error("MCP server is not started: processes are confined less than is configured", slog.String("mcp_server", m.Name),
				slog.String("isolation", string(o.Isolation)), slog.String("min_level", string(least)))
			continue
		}
		o.Servers = append(o.Servers, mcp.Server{
			Name: m.Name, Command: m.Command, URL: m.URL, Environment: m.Environment, Headers: m.Headers,
			Writable: m.Writable, Readable: m.Readable, Network: m.Network,
			Timeout: m.Timeout, StartTimeout: m.StartTimeout, Tier: m.Tier, Trust: m.Trust, Tools: m.Tools,
		})
	}
	return func(ctx context.Context) ([]tools.Tool, func()) {
		set := mcp.Start(ctx, o)
		return set.Tools(), set.Close
	}, nil
}

// foreign starts what o.Foreign brings, and adds its tools, except those that
// would pass for another.
func (o Options) foreign(ctx context.Context) (Options, func()) {
	if o.Foreign == nil {
		return o, func() {}
	}
	taken := map[string]bool{}
	for _, name := range tools.BuiltIn() {
		taken[name] = true
	}
	list := make([]tools.Tool, 0, len(o.Tools))
	for _, t := range o.Tools {
		taken[events.Token(t.Name())] = true
		list = append(list, t)
	}
	more, end := o.Foreign(ctx)
	for _, t := range more {
		token := events.Token(t.Name())
		if taken[token] {
			o.Logger.Error("tool is not offered: there is another of its name", slog.String("tool", t.Name()))
			continue
		}
		taken[token] = true
		list = append(list, t)
	}
	o.Tools = list
	return o, end
}
