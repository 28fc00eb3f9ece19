package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"correx/pkg/events"
)

const (
	defaultTimeout = 30 * time.Second
	maxArguments   = 64
	maxArgument    = 8 << 10 // bytes of one
)

// A ShellTool runs a program with its arguments. There is no shell in it: nothing
// expands, splits or pipes. In transactional mode what a program changes counts
// only if it succeeds, and then all of it; see [ShellMode].
type ShellTool struct {
	runner      Runner
	programs    map[string]program
	names       []string // sorted
	timeout     time.Duration
	workingDir  string   // real; empty: the invocation's own
	roots       []string // real directories that every program may change
	environment []string // names
	mode        ShellMode
	why         string // why the mode is less than it could be
	commit      ShellCommit
	kept        kept
	protected   []string
}

func newShell(c Config) (*ShellTool, error) {
	if c.Runner == nil {
		return nil, errors.New("it is enabled and nothing was given that starts processes")
	}
	s := c.Shell
	t := &ShellTool{
		runner: c.Runner, timeout: s.Timeout, environment: s.Environment, commit: s.Commit,
		kept: kept{dir: s.Kept}, protected: c.Protected,
	}
	if t.timeout == 0 {
		t.timeout = defaultTimeout
	}
	var faults []error
	if t.timeout < 0 {
		faults = append(faults, fmt.Errorf("timeout %s is negative", t.timeout))
	}
	for _, name := range s.Environment {
		faults = append(faults, checkVariable(name))
	}
	var err error
	if s.WorkingDir != "" {
		if t.workingDir, err = realDir(s.WorkingDir); err != nil {
			faults = append(faults, fmt.Errorf("working_dir: %w", err))
		}
	}
	t.roots = changeableDirs(c, t.workingDir)
	t.programs, err = c.programs(writableDirs(c, t.workingDir))
	faults = append(faults, err)
	t.names = slices.Sorted(maps.Keys(t.programs))
	if t.mode, t.why, err = c.mode(); err != nil {
		faults = append(faults, err)
	} else {
		faults = append(faults, c.checkCommit(t.mode))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return t, nil
}

// Mode is what becomes of what commands change, and why it is direct if nobody
// asked for that.
func (t *ShellTool) Mode() (mode ShellMode, why string) { return t.mode, t.why }

// NeedsDir implements [DirTool]: a dry run has one, too.
func (*ShellTool) NeedsDir(events.ToolRequest) bool { return true }

// Commits implements [CommittingTool].
func (t *ShellTool) Commits(events.ToolRequest) bool { return t.mode == ShellTransactional }

// Name implements [Tool].
func (*ShellTool) Name() string { return "shell" }

// Description implements [Tool].
func (t *ShellTool) Description() string {
	if len(t.names) == 0 {
		return "Runs a program with its arguments. No program is allowed here."
	}
	return "Runs a program with its arguments; there is no shell, so nothing is expanded or piped. " + t.keeps() +
		" Programs: " + strings.Join(t.names, ", ") + "."
}

// keeps says what becomes of changes.
func (t *ShellTool) keeps() string {
	switch {
	case t.mode == ShellDirect:
		return "What it changes stays, also if it fails."
	case t.commit == CommitReview:
		return "What it changes is kept if it succeeds and a person agrees."
	}
	return "What it changes is kept if it succeeds, else none of it."
}

// Tier implements [Tool].
func (*ShellTool) Tier() events.Tier { return events.T2 }

// TierFor implements [TierRaiser]: a program that runs other programs is T3.
func (t *ShellTool) TierFor(r events.ToolRequest) events.Tier {
	c, err := t.parse(r)
	if err == nil && c.program.interpreter {
		return events.T3
	}
	return events.T2
}

// RequiredCapabilities implements [Tool].
func (t *ShellTool) RequiredCapabilities() []events.ToolCapability {
	caps := []events.ToolCapability{events.ShellExec, events.ProcessSpawn}
	for _, p := range t.programs {
		if p.Network {
			return append(caps, events.NetworkAccess)
		}
	}
	return caps
}

// ParametersSchema implements [Tool].
func (t *ShellTool) ParametersSchema() events.Raw {
	text, _ := json.Marshal("the program, then each argument as an item of its own; programs: " + strings.Join(t.names, ", ")) // a string always encodes
	dir := ""
	if t.workingDir != "" {
		dir = `,"dir":{"type":"string","minLength":1,"maxLength":512,"description":"directory of the workspace to run in; left out: the workspace itself"}`
	}
	return events.Raw(`{"type":"object","properties":{"argv":{"type":"array",` +
		`"items":{"type":"string","maxLength":1000},"minItems":1,"maxItems":64,"description":` + string(text) +
		`}` + dir + `},"required":["argv"],"additionalProperties":false}`)
}

// Example implements [Tool]. There is one for the commonest programs only, since
// it has to be one that is allowed.
func (t *ShellTool) Example() *events.ToolExample {
	for _, e := range []events.ToolExample{
		{Task: "Print the word alpha.", Parameters: events.Raw(`{"argv":["echo","alpha"]}`), Result: "alpha\n", Answer: "The program printed alpha."},
		{Task: "List the files.", Parameters: events.Raw(`{"argv":["ls"]}`), Result: "a.txt\nnotes\n", Answer: "There are a.txt and notes."},
		{Task: "Show notes/a.txt.", Parameters: events.Raw(`{"argv":["cat","notes/a.txt"]}`), Result: "alpha", Answer: "notes/a.txt contains the word alpha."},
	} {
		if _, err := t.parse(events.ToolRequest{Parameters: e.Parameters}); err == nil {
			return &e
		}
	}
	return nil
}

// A shellCall is a request that was read and found to be allowed.
type shellCall struct {
	argv    []string
	program program
	dir     string // real; empty: the invocation's own
}

// parse reads a request and makes sure that its program is allowed.
func (t *ShellTool) parse(r events.ToolRequest) (shellCall, error) {
	var p struct {
		Argv []string `json:"argv"`
		Dir  string   `json:"dir"`
	}
	if err := decode(r, &p); err != nil {
		return shellCall{}, fmt.Errorf("shell: %w", err)
	}
	switch {
	case len(p.Argv) == 0:
		return shellCall{}, errors.New("shell: argv is empty; give the program and its arguments")
	case len(p.Argv) > maxArguments:
		return shellCall{}, fmt.Errorf("shell: argv has %d items, and %d are allowed", len(p.Argv), maxArguments)
	}
	for i, a := range p.Argv {
		if len(a) > maxArgument || strings.ContainsRune(a, 0) {
			return shellCall{}, fmt.Errorf("shell: argv[%d] is longer than %d bytes or has a NUL", i, maxArgument)
		}
	}
	x, ok := t.programs[p.Argv[0]]
	if !ok {
		return shellCall{}, t.denied(p.Argv[0])
	}
	dir, err := t.dirOf(p.Dir)
	return shellCall{p.Argv, x, dir}, err
}

// dirOf is the directory that a request names, inside the one that is configured.
func (t *ShellTool) dirOf(name string) (string, error) {
	if name == "" || t.workingDir == "" && name == "." {
		return t.workingDir, nil
	}
	if t.workingDir == "" {
		return "", errors.New("shell: dir is given, and no workspace is configured here; leave it out")
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.workingDir, path)
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("shell: there is no directory %s in %s", name, t.workingDir)
	case err != nil:
		return "", fmt.Errorf("shell: dir %s: %w", name, err)
	case !inside(t.workingDir, real):
		return "", fmt.Errorf("shell: dir %s is not in %s", name, t.workingDir)
	}
	if fi, err := os.Stat(real); err != nil || !fi.IsDir() {
		return "", fmt.Errorf("shell: %s is no directory", name)
	}
	return real, nil
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
