package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"correx/pkg/events"
	"correx/pkg/tools/workspace"
)

const (
	defaultTimeout = 30 * time.Second
	maxArguments   = 64
	maxArgument    = 8 << 10 // bytes of one
)

// A ShellTool runs a program with its arguments. There is no shell in it:
// nothing expands, splits or pipes. What the program changes stays.
type ShellTool struct {
	runner      Runner
	executables map[string]executable
	names       []string // sorted
	timeout     time.Duration
	workingDir  string
	environment []string // names
	writable    []string // where no executable may be
	roots       []string // what a program may change
}

func newShell(c Config) (*ShellTool, error) {
	if c.Runner == nil {
		return nil, errors.New("it is enabled and nothing was given that starts processes")
	}
	s := c.Shell
	t := &ShellTool{runner: c.Runner, executables: map[string]executable{}, timeout: s.Timeout, environment: s.Environment}
	if t.timeout == 0 {
		t.timeout = defaultTimeout
	}
	var faults []error
	if t.timeout < 0 {
		faults = append(faults, fmt.Errorf("timeout %s is negative", t.timeout))
	}
	for _, name := range s.Environment {
		if err := checkVariable(name); err != nil {
			faults = append(faults, err)
		}
	}
	if s.WorkingDir != "" {
		roots, err := workspace.Open([]string{s.WorkingDir})
		if err != nil {
			faults = append(faults, fmt.Errorf("working_dir: %w", err))
		} else {
			t.workingDir = roots.Dirs()[0]
			faults = append(faults, roots.Close())
		}
	}
	t.writable, t.roots = writableDirs(c, t.workingDir), changeableDirs(c, t.workingDir)
	for _, entry := range s.AllowedExecutables {
		faults = append(faults, t.allow(entry, set(strings.Join(s.Interpreters, " "))))
	}
	slices.Sort(t.names)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *ShellTool) allow(entry string, interpreters map[string]bool) error {
	x, err := findExecutable(entry, t.writable, interpreters)
	if err != nil {
		return err
	}
	if have, ok := t.executables[x.name]; ok && have.path != x.path {
		return fmt.Errorf("executables %s and %s are both called %s", have.path, x.path, x.name)
	} else if ok {
		return nil
	}
	t.executables[x.name] = x
	t.names = append(t.names, x.name)
	return nil
}

// Name implements [Tool].
func (*ShellTool) Name() string { return "shell" }

// Description implements [Tool].
func (t *ShellTool) Description() string {
	if len(t.names) == 0 {
		return "Runs a program with its arguments. No program is allowed here."
	}
	return "Runs a program with its arguments; there is no shell, so nothing is expanded or piped. Programs: " + strings.Join(t.names, ", ") + "."
}

// Tier implements [Tool].
func (*ShellTool) Tier() events.Tier { return events.T2 }

// TierFor implements [TierRaiser]: a program that runs other programs is T3.
func (t *ShellTool) TierFor(r events.ToolRequest) events.Tier {
	argv, err := t.parse(r)
	if err == nil && t.executables[argv[0]].interpreter {
		return events.T3
	}
	return events.T2
}

// RequiredCapabilities implements [Tool].
func (*ShellTool) RequiredCapabilities() []events.ToolCapability {
	return []events.ToolCapability{events.ShellExec, events.ProcessSpawn}
}

// ParametersSchema implements [Tool].
func (t *ShellTool) ParametersSchema() events.Raw {
	text, _ := json.Marshal("the program, then each argument as an item of its own; programs: " + strings.Join(t.names, ", ")) // a string always encodes
	return events.Raw(`{"type":"object","properties":{"argv":{"type":"array",` +
		`"items":{"type":"string","maxLength":1000},"minItems":1,"maxItems":64,"description":` + string(text) +
		`}},"required":["argv"],"additionalProperties":false}`)
}

// Example implements [Tool]. There is one for the commonest programs only, since
// it has to be one that is allowed.
func (t *ShellTool) Example() *events.ToolExample {
	for _, e := range []events.ToolExample{
		{Task: "Print the word alpha.", Parameters: events.Raw(`{"argv":["echo","alpha"]}`), Result: "alpha\n", Answer: "The program printed alpha."},
		{Task: "List the files.", Parameters: events.Raw(`{"argv":["ls"]}`), Result: "a.txt\nnotes\n", Answer: "There are a.txt and notes."},
		{Task: "Show notes/a.txt.", Parameters: events.Raw(`{"argv":["cat","notes/a.txt"]}`), Result: "alpha", Answer: "notes/a.txt contains the word alpha."},
	} {
		if argv, err := t.parse(events.ToolRequest{Parameters: e.Parameters}); err == nil && t.executables[argv[0]].name != "" {
			return &e
		}
	}
	return nil
}

// parse reads argv and makes sure that its program is allowed.
func (t *ShellTool) parse(r events.ToolRequest) ([]string, error) {
	var p struct {
		Argv []string `json:"argv"`
	}
	if err := decode(r, &p); err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	switch {
	case len(p.Argv) == 0:
		return nil, errors.New("shell: argv is empty; give the program and its arguments")
	case len(p.Argv) > maxArguments:
		return nil, fmt.Errorf("shell: argv has %d items, and %d are allowed", len(p.Argv), maxArguments)
	}
	for i, a := range p.Argv {
		if len(a) > maxArgument || strings.ContainsRune(a, 0) {
			return nil, fmt.Errorf("shell: argv[%d] is longer than %d bytes or has a NUL", i, maxArgument)
		}
	}
	if _, ok := t.executables[p.Argv[0]]; !ok {
		return nil, t.denied(p.Argv[0])
	}
	return p.Argv, nil
}

func (t *ShellTool) denied(name string) error {
	switch {
	case len(t.names) == 0:
		return fmt.Errorf("shell: %q is not allowed; no executable is (allowed_executables is empty)", name)
	case strings.ContainsAny(name, " \t|;&<>"):
		return fmt.Errorf("shell: %q is not allowed, nor a program: there is no shell here; give the program as the first item of argv and each argument as an item of its own. Allowed are: %s", name, strings.Join(t.names, ", "))
	case strings.ContainsRune(name, '/'):
		return fmt.Errorf("shell: %q is a path, which is not allowed; give the bare name of one of: %s", name, strings.Join(t.names, ", "))
	}
	return fmt.Errorf("shell: %q is not allowed; allowed are: %s", name, strings.Join(t.names, ", "))
}

// ValidateRequest implements [Tool].
func (t *ShellTool) ValidateRequest(r events.ToolRequest) ValidationResult {
	if _, err := t.parse(r); err != nil {
		return Invalid("%v", err)
	}
	return Valid()
}

// Preview implements [Previewer]. What a program will do cannot be known; but
// whether it is allowed can, and at which tier.
func (t *ShellTool) Preview(_ context.Context, r events.ToolRequest) Preview {
	v := t.ValidateRequest(r)
	return Preview{Valid: v.OK(), Reason: v.Reason(), Tier: t.TierFor(r)}
}

// Execute implements [Executor].
func (t *ShellTool) Execute(ctx context.Context, r events.ToolRequest) ToolResult {
	argv, err := t.parse(r)
	if err != nil {
		return fail(r, err.Error())
	}
	x := t.executables[argv[0]]
	if err := x.check(); err != nil {
		return fail(r, "shell: "+err.Error())
	}
	home := ScopeOf(ctx).Dir
	if home == "" {
		if home, err = os.MkdirTemp("", "correx-"); err != nil {
			return fail(r, fmt.Sprintf("shell: make directory: %v", err))
		}
		defer os.RemoveAll(home)
	}
	dir := t.workingDir
	if dir == "" {
		dir = home
	}
	exit, err := t.runner.Run(ctx, Command{
		Path: x.path, Argv: argv, Env: t.env(home), Dir: dir, Timeout: t.timeout, Writable: append(slices.Clone(t.roots), home),
	})
	if err != nil {
		f := fail(r, fmt.Sprintf("shell: %s could not be started: %v", argv[0], err))
		f.Recoverable, f.Effects = passes(err), events.EffectsNone
		return f
	}
	return t.result(r, argv[0], exit)
}
