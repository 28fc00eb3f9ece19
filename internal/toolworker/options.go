package toolworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"correx/internal/config"
	"correx/internal/workerhome"
	"correx/pkg/events"
	"correx/pkg/sandbox"
	"correx/pkg/tools"
)

// Options are what a worker runs on. Fields without a default are required.
type Options struct {
	StateDir string
	Home     *workerhome.Home
	URL      string // of the NATS server; empty: what the state directory says
	Host     string // default: the machine's name
	Version  string // semantic
	Tools    []tools.Tool
	// Foreign starts what brings further tools, and returns them and what ends it.
	Foreign     func(context.Context) ([]tools.Tool, func())
	Isolation   events.Isolation // that processes of tools get
	Least       events.Isolation // that they must get
	Root        string           // of the invocations' directories; empty: in the home
	AckWait     time.Duration    // default 30 s
	Drain       time.Duration    // default 30 s
	Concurrency int              // default 4
	Logger      *slog.Logger

	// Fault is called at each of sandbox.FaultPoints, for tests that end the
	// process there.
	Fault func(point string)
}

func (o Options) withDefaults() (Options, error) {
	if o.StateDir == "" || o.Home == nil || o.Logger == nil {
		return o, errors.New("tool-worker: state directory, home and logger are required")
	}
	if o.Host == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("tool-worker: name of this machine: %w", err)
		}
		o.Host = host
	}
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if o.Isolation == "" {
		o.Isolation = events.IsolationNone
	}
	if o.Least == "" {
		o.Least = events.IsolationNone
	}
	if o.AckWait <= 0 {
		o.AckWait = 30 * time.Second
	}
	if o.Drain <= 0 {
		o.Drain = 30 * time.Second
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 4
	}
	return o, nil
}

// RunnerOptions is how processes of tools are confined. What Correx keeps, keys
// and all, is hidden from them, but for the directory of their invocation.
func RunnerOptions(cfg config.Config, home *workerhome.Home) sandbox.RunnerOptions {
	s := cfg.Tools.Sandbox
	root := sandboxRoot(cfg, home)
	return sandbox.RunnerOptions{
		Level: s.Level, Hidden: append([]string{cfg.State, home.Dir, root}, s.Hidden...), Protected: s.Protected,
		Scratch: root, Holds: filepath.Join(home.Dir, "holds"),
		Limits: limitsOf(s.Limits),
	}
}

// sandboxRoot is the directory of the invocations. It is emptied at every start, so
// it is never itself what the configuration names.
func sandboxRoot(cfg config.Config, home *workerhome.Home) string {
	return rootOf(cfg.Tools.Sandbox.Root, home)
}

func rootOf(dir string, home *workerhome.Home) string {
	if dir != "" {
		return filepath.Join(dir, "correx-"+filepath.Base(home.Dir))
	}
	return filepath.Join(home.Dir, "sandbox")
}

// FromConfig takes over what a configuration says about tool-workers. Runner
// starts the processes of tools.
func FromConfig(cfg config.Config, home *workerhome.Home, runner tools.Runner, logger *slog.Logger) (Options, error) {
	list, err := tools.Build(toolsConfig(cfg.Tools, home.Dir, runner))
	if err != nil {
		return Options{}, fmt.Errorf("build tools: %w", err)
	}
	for _, t := range list {
		if s, ok := t.(*tools.ShellTool); ok {
			if _, why := s.Mode(); why != "" {
				logger.Warn("shell runs in mode direct: what a command changes stays, also if it fails", slog.String("why", why))
			}
		}
	}
	foreign, err := servers(cfg, home, runner, logger)
	if err != nil {
		return Options{}, err
	}
	return Options{
		StateDir: cfg.State, Home: home, URL: cfg.NATS.URL, Tools: list, Foreign: foreign,
		Isolation: runner.Isolation(), Least: cfg.Tools.Sandbox.MinLevel, Root: sandboxRoot(cfg, home),
		AckWait: cfg.Worker.AckWait, Drain: cfg.Worker.Drain, Concurrency: cfg.Worker.Concurrency, Logger: logger,
	}, nil
}

func toolsConfig(c config.Tools, dir string, runner tools.Runner) tools.Config {
	return tools.Config{
		Shell:     shellConfig(c.Shell, dir),
		FileRead:  tools.FileReadConfig{Enabled: c.FileRead.Enabled, AllowedPaths: c.FileRead.AllowedPaths},
		FileWrite: tools.FileWriteConfig{Enabled: c.FileWrite.Enabled, AllowedPaths: c.FileWrite.AllowedPaths},
		FileEdit:  tools.FileEditConfig{Enabled: c.FileEdit.Enabled, AllowedPaths: c.FileEdit.AllowedPaths},
		Echo:      tools.EchoConfig{Enabled: c.Echo.Enabled, Tier: c.Echo.Tier},
		Runner:    runner,
		Writable:  []string{dir}, MinIsolation: c.Sandbox.MinLevel, Protected: c.Sandbox.Protected,
	}
}

func shellConfig(s config.Shell, dir string) tools.ShellConfig {
	out := tools.ShellConfig{
		Enabled: s.Enabled, AllowedExecutables: s.AllowedExecutables,
		Timeout: s.Timeout, WorkingDir: s.WorkingDir, Environment: s.Environment, Interpreters: s.Interpreters,
		Mode: tools.ShellMode(s.Mode), Commit: tools.ShellCommit(s.Commit), Kept: filepath.Join(dir, "changes"),
	}
	for _, e := range s.Executables {
		out.Executables = append(out.Executables, tools.Executable{
			Name: e.Name, Interpreter: e.Interpreter, Timeout: e.Timeout, Limits: limitsOf(e.Limits),
			Writable: e.Writable, ReadOnly: e.ReadOnly, Readable: e.Readable, Network: e.Network, DryRun: e.DryRun,
		})
	}
	return out
}

func limitsOf(l config.ProcessLimits) tools.Limits {
	const mib = 1 << 20
	return tools.Limits{
		CPU: uint64(l.CPU), AddressSpace: uint64(l.AddressSpace) * mib, FileSize: uint64(l.FileSize) * mib,
		OpenFiles: uint64(l.OpenFiles), Processes: uint64(l.Processes), Memory: uint64(l.Memory) * mib,
	}
}
