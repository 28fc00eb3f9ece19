package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"correx/pkg/tools"
)

// handshakes are the protocol versions that are tried: first the one by which all
// but the newest servers are greeted, for some of the others end at once when they
// hear anything else; then the SDK's own choice.
var handshakes = []string{"2025-11-25", ""}

// dial starts the server, or connects to it.
func (s *server) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.StartTimeout)
	defer cancel()
	defer context.AfterFunc(s.quit, cancel)()
	var last error
	for _, version := range handshakes {
		l, err := s.greet(ctx, version)
		if err == nil {
			return l, nil
		}
		last = err
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || ctx.Err() != nil {
			break // it is not the greeting that was wrong
		}
	}
	return nil, fmt.Errorf("start MCP server %s: %w", s.config.Name, last)
}

func (s *server) greet(ctx context.Context, version string) (*link, error) {
	l := &link{began: time.Now(), gone: make(chan struct{})}
	transport, err := s.transport(l)
	if err != nil {
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "correx", Version: s.o.Version}, &sdk.ClientOptions{
		// No roots, no sampling, no elicitation: such requests are answered with
		// an error, and a result that asks for input is a failure.
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			l.stale.Store(true)
			s.log.Warn("MCP server says that its tools changed; they are checked before the next call")
		},
		//lint:ignore SA1019 servers of older versions of the protocol still log
		LoggingMessageHandler: func(_ context.Context, r *sdk.LoggingMessageRequest) {
			s.log.Debug("MCP server says", slog.String("level", string(r.Params.Level)), slog.String("text", visible(text(r.Params.Data), 1<<10)))
		},
	})
	type outcome struct {
		session *sdk.ClientSession
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		session, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
		done <- outcome{session, err}
	}()
	var got outcome
	select {
	case got = <-done:
	case <-ctx.Done():
		late := fmt.Errorf("it did not answer within %s", s.config.StartTimeout)
		if l.pipe != nil {
			l.pipe.kill(late)
		}
		l.cut()
		got = <-done // nothing is left that it could wait for
		got.err = errors.Join(late, got.err)
	}
	if got.err != nil {
		l.cut()
		if got.session != nil {
			_ = got.session.Close()
		}
		if l.pipe != nil {
			_ = l.pipe.Close()
			return nil, fmt.Errorf("%w; %s", visibly(got.err), l.pipe.ending())
		}
		return nil, visibly(got.err)
	}
	l.session = got.session
	go s.watch(l)
	return l, nil
}

// transport starts the process, or prepares requests. Of the link it sets pipe
// and cut.
func (s *server) transport(l *link) (sdk.Transport, error) {
	life, cut := context.WithCancel(s.life)
	l.cut = cut
	if s.config.URL != "" {
		header, err := s.header()
		if err != nil {
			cut()
			return nil, err
		}
		return httpTransport(life, s.config.URL, header), nil
	}
	command, err := s.command()
	if err != nil {
		cut()
		return nil, err
	}
	process, err := s.o.Starter.Start(life, command)
	if err != nil {
		cut()
		return nil, err
	}
	l.pipe = newPipe(process)
	return l.pipe, nil
}

func (s *server) header() (http.Header, error) {
	h := http.Header{}
	for name, variable := range s.config.Headers {
		value, ok := s.lookup(variable)
		if !ok {
			return nil, fmt.Errorf("the variable %s, for the header %s, is not set", variable, name)
		}
		h.Set(name, value)
	}
	return h, nil
}

// command is the process of a server, in a directory of its own.
func (s *server) command() (tools.Command, error) {
	dir := filepath.Join(s.o.Dir, s.config.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return tools.Command{}, err
	}
	writable := append([]string{dir}, s.config.Writable...)
	path, err := program(s.config.Command[0], writable)
	if err != nil {
		return tools.Command{}, err
	}
	env := []string{"PATH=" + tools.SearchPath, "HOME=" + dir, "TMPDIR=" + dir, "LANG=C.UTF-8"}
	for _, name := range s.config.Environment {
		value, ok := s.lookup(name)
		if !ok {
			return tools.Command{}, fmt.Errorf("the variable %s is not set", name)
		}
		env = append(env, name+"="+value)
	}
	return tools.Command{
		Path: path, Argv: s.config.Command, Env: env, Dir: dir,
		Writable: writable, Readable: s.config.Readable, Network: s.config.Network,
		// It lives as long as the worker, and runtimes reserve much more address
		// space than they use.
		Limits: tools.Limits{CPU: 30 * 24 * 3600, AddressSpace: 64 << 30, OpenFiles: 1024, Processes: 256},
	}, nil
}

func (s *server) lookup(variable string) (string, bool) {
	if s.o.Lookup == nil {
		return os.LookupEnv(variable)
	}
	return s.o.Lookup(variable)
}

// program finds what is to be started, and refuses what it could replace.
func program(name string, writable []string) (string, error) {
	path := name
	if !filepath.IsAbs(name) {
		path = ""
		for _, dir := range filepath.SplitList(tools.SearchPath) {
			full := filepath.Join(dir, name)
			if fi, err := os.Stat(full); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 && !strings.ContainsRune(name, '/') {
				path = full
				break
			}
		}
		if path == "" {
			return "", fmt.Errorf("program %q is not in %s; install it, or give its absolute path", name, tools.SearchPath)
		}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("program %q: %w", name, err)
	}
	for _, dir := range writable {
		if in, err := filepath.EvalSymlinks(dir); err == nil {
			dir = in
		}
		if rel, err := filepath.Rel(dir, real); err == nil && filepath.IsLocal(rel) {
			return "", fmt.Errorf("program %q is %s, below %s, where it may write; it could replace itself", name, real, dir)
		}
	}
	return real, nil
}
