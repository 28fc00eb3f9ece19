package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"correx/pkg/events"
	"correx/pkg/tools"
)

// A Set is servers at work.
type Set struct {
	servers []*server
	tools   []tools.Tool
}

// Start starts all servers at one time and returns when each has told its tools,
// or is given up. A server that is given up offers nothing until the next Start,
// and the log says why; so it does of each tool that cannot be offered.
func Start(ctx context.Context, o Options) *Set {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	set := &Set{}
	offers := make([][]tools.Tool, len(o.Servers))
	var wait sync.WaitGroup
	for i, c := range o.Servers {
		s := newServer(c.withDefaults(), o)
		set.servers = append(set.servers, s)
		wait.Go(func() {
			var err error
			if offers[i], err = s.offer(ctx); err != nil {
				s.log.Error("MCP server gives no tools; the others go on without it", slog.Any("error", err))
			}
		})
	}
	wait.Wait()
	set.tools = slices.Concat(offers...)
	return set
}

// Tools returns what the servers offer.
func (s *Set) Tools() []tools.Tool { return slices.Clone(s.tools) }

// Close ends the servers and waits until their processes are dead.
func (s *Set) Close() {
	var wait sync.WaitGroup
	for _, one := range s.servers {
		wait.Go(one.close)
	}
	wait.Wait()
}

// offer connects for the first time and makes tools of what the server lists.
func (s *server) offer(ctx context.Context) ([]tools.Tool, error) {
	l, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	listed, err := s.list(ctx, l)
	if err != nil {
		l.kill(err)
		return nil, err
	}
	s.link = l
	var offered []tools.Tool
	var others, seen []string
	for _, t := range listed {
		switch {
		case !s.allowed(t.Name):
			others = append(others, visible(t.Name, 100))
			continue
		case slices.Contains(seen, t.Name):
			s.log.Error("MCP server lists a tool twice; the second is not offered", slog.String("tool", visible(t.Name, 100)))
			continue
		}
		seen = append(seen, t.Name)
		made, err := newTool(s, t)
		if err != nil {
			s.log.Error("MCP tool is not offered", slog.String("tool", visible(t.Name, 100)), slog.Any("error", err))
			continue
		}
		s.pins[t.Name] = pin(t)
		offered = append(offered, made)
	}
	for _, name := range s.config.Tools {
		if name != "*" && !slices.Contains(seen, name) {
			s.log.Error("MCP server has no such tool", slog.String("tool", name))
		}
	}
	if len(others) > 0 {
		s.log.Info("MCP server has tools that its list in the configuration does not name", slog.String("tools", strings.Join(others, " ")))
	}
	return offered, nil
}

func (s *server) allowed(tool string) bool {
	return slices.Contains(s.config.Tools, tool) || slices.Contains(s.config.Tools, "*")
}

// list asks for the tools, page by page.
func (s *server) list(ctx context.Context, l *link) ([]*sdk.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.StartTimeout)
	defer cancel()
	var all []*sdk.Tool
	params := &sdk.ListToolsParams{}
	for range maxTools {
		page, err := guarded(ctx, l, func() (*sdk.ListToolsResult, error) { return l.session.ListTools(ctx, params) })
		if err != nil {
			return nil, s.explain(ctx, l, fmt.Errorf("list the tools of %s: %w", s.config.Name, err))
		}
		if all = append(all, page.Tools...); len(all) > maxTools {
			return nil, fmt.Errorf("list the tools of %s: there are more than %d", s.config.Name, maxTools)
		}
		if page.NextCursor == "" {
			return all, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, fmt.Errorf("list the tools of %s: the list has no end", s.config.Name)
}

// verify holds what the server lists now against what was announced. A tool that
// is another now is refused from here on.
func (s *server) verify(ctx context.Context, l *link) error {
	listed, err := s.list(ctx, l)
	if err != nil {
		return err
	}
	now := map[string]string{}
	for _, t := range listed {
		if _, twice := now[t.Name]; !twice {
			now[t.Name] = pin(t)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, was := range s.pins {
		if is, there := now[name]; is != was && s.changed[name] == nil {
			s.changed[name] = errChanged
			s.log.Error("ALARM: MCP server changed a tool after it was announced; it is refused until this worker is restarted",
				slog.String("tool", visible(name, 100)), slog.Bool("gone", !there))
		}
	}
	return nil
}

var errChanged = errors.New("its server changed it after it was announced, so that nobody has seen what would run; whoever trusts the change restarts the tool-worker")

// refusal says why a tool is not to be called any more, or nil.
func (s *server) refusal(tool string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed[tool]
}

func (s *server) isolation() events.Isolation {
	if s.config.URL != "" {
		return events.IsolationNone
	}
	return s.o.Isolation
}
