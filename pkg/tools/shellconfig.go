package tools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"correx/pkg/tools/workspace"
)

// A ShellMode says what becomes of what a command changes.
type ShellMode string

const (
	// ShellDirect changes the files as the command goes.
	ShellDirect ShellMode = "direct"
	// ShellTransactional runs the command on an overlay and commits what it changed
	// if it succeeds, all of it or nothing.
	ShellTransactional ShellMode = "transactional"
)

// A ShellCommit says who decides about the changes of a transactional run.
type ShellCommit string

const (
	// CommitAuto commits what a command that succeeded has changed.
	CommitAuto ShellCommit = "auto"
	// CommitReview holds it back until a person has seen the diff.
	CommitReview ShellCommit = "review"
)

// ShellConfig configures the tool shell.
type ShellConfig struct {
	Enabled            bool
	AllowedExecutables []string      // bare names, looked up in [SearchPath], or absolute paths, called by their last part
	Executables        []Executable  // allowed too, each with settings of its own
	Timeout            time.Duration // 0: 30 s
	WorkingDir         string        // empty: the invocation's own
	Environment        []string      // names of variables that are handed on
	Interpreters       []string      // names that run other programs, besides the known ones
	Mode               ShellMode     // empty: transactional where the Runner can, else direct
	Commit             ShellCommit   // empty: auto
	Kept               string        // directory for changes that wait for a review; needed for [CommitReview]
}

// An Executable is a program that is allowed, and what is different about it.
type Executable struct {
	Name        string // as in AllowedExecutables
	Interpreter bool   // it runs other programs or code: it is asked for at T3
	Timeout     time.Duration
	Limits      Limits
	Writable    []string // further directories that it may change
	ReadOnly    []string // what it may not change all the same
	Readable    []string // what it may read though it is hidden from others
	Network     bool     // it may reach the network
	DryRun      bool     // a preview may run it, on an overlay and without network, to show what it would change
}

// An Overlayer is a [Runner] that knows whether [Command.Overlays] work here.
type Overlayer interface {
	Overlays() error // nil: they do
}

// mode is what the configuration and the machine come to, and why it is less than
// what could be.
func (c Config) mode() (mode ShellMode, why string, err error) {
	var refused error
	if o, ok := c.Runner.(Overlayer); !ok {
		refused = errors.New("what starts processes here has no overlays")
	} else {
		refused = o.Overlays()
	}
	switch c.Shell.Mode {
	case ShellDirect:
		return ShellDirect, "", nil
	case ShellTransactional:
		if refused != nil {
			return "", "", fmt.Errorf("mode is transactional, which does not work on this machine: %w; mode direct does", refused)
		}
		return ShellTransactional, "", nil
	case "":
		if refused != nil {
			return ShellDirect, refused.Error(), nil
		}
		return ShellTransactional, "", nil
	}
	return "", "", fmt.Errorf("mode %q is neither direct nor transactional", c.Shell.Mode)
}

// checkCommit refuses reviews of what is changed already.
func (c Config) checkCommit(mode ShellMode) error {
	switch {
	case c.Shell.Commit == "", c.Shell.Commit == CommitAuto:
		return nil
	case c.Shell.Commit != CommitReview:
		return fmt.Errorf("commit %q is neither auto nor review", c.Shell.Commit)
	case mode != ShellTransactional:
		return errors.New("commit is review, which needs mode transactional")
	case c.Shell.Kept == "":
		return errors.New("commit is review, and no directory is given for changes that wait")
	}
	return nil
}

// A program is an executable with what is different about it.
type program struct {
	executable
	Executable
	writable []string // real paths
}

// programs finds all that is allowed, by the name that it is called.
func (c Config) programs(unsafe []string) (map[string]program, error) {
	more := set(strings.Join(c.Shell.Interpreters, " "))
	found := map[string]program{}
	var faults []error
	for _, e := range c.Shell.Executables { // none may lie where another may write
		dirs, err := realDirs(e.Writable)
		if err != nil {
			faults = append(faults, fmt.Errorf("executable %q: writable: %w", e.Name, err))
		}
		unsafe = slices.Concat(unsafe, dirs)
	}
	add := func(e Executable) {
		p := program{Executable: e}
		p.writable, _ = realDirs(e.Writable) // its error is told above
		var err error
		if p.executable, err = findExecutable(e.Name, unsafe, more); err != nil {
			faults = append(faults, err)
			return
		}
		p.interpreter = p.interpreter || e.Interpreter
		if e.Timeout < 0 {
			faults = append(faults, fmt.Errorf("executable %q: timeout %s is negative", e.Name, e.Timeout))
		}
		if have, ok := found[p.name]; ok && have.path != p.path {
			faults = append(faults, fmt.Errorf("executables %s and %s are both called %s", have.path, p.path, p.name))
			return
		}
		found[p.name] = p
	}
	for _, name := range c.Shell.AllowedExecutables {
		add(Executable{Name: name})
	}
	for _, e := range c.Shell.Executables {
		add(e)
	}
	return found, errors.Join(faults...)
}

// realDirs are directories as they really are; each must exist.
func realDirs(dirs []string) ([]string, error) {
	var out []string
	for _, d := range dirs {
		real, err := filepath.EvalSymlinks(d)
		if err != nil {
			return nil, err
		}
		if fi, err := os.Stat(real); err != nil || !fi.IsDir() {
			return nil, fmt.Errorf("%s is no directory", d)
		}
		if real, err = filepath.Abs(real); err != nil {
			return nil, err
		}
		out = append(out, real)
	}
	return out, nil
}

// realDir is a directory as workspace finds it.
func realDir(dir string) (string, error) {
	roots, err := workspace.Open([]string{dir})
	if err != nil {
		return "", err
	}
	return roots.Dirs()[0], roots.Close()
}

// outermost leaves out directories that lie in others of the list.
func outermost(dirs []string) []string {
	var out []string
	for _, d := range dirs {
		inner := slices.ContainsFunc(dirs, func(o string) bool { return o != d && inside(o, d) })
		if !inner && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return out
}
