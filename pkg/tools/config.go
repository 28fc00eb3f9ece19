package tools

import (
	"errors"
	"fmt"

	"correx/pkg/events"
)

// A Config says which built-in tools there are and what they may do. In its zero
// value there is none.
type Config struct {
	Shell     ShellConfig
	FileRead  FileReadConfig
	FileWrite FileWriteConfig
	FileEdit  FileEditConfig
	Echo      EchoConfig

	// Protected are paths that no file tool changes, nor anything below them: names
	// relative to each allowed directory, or absolute. .git always is one.
	Protected []string

	// Runner starts the processes of tools. It is needed when a tool starts some;
	// file_edit has no patch without it.
	Runner Runner
	// MinIsolation is what Runner must reach for file_edit to have patch; empty:
	// none. Whoever runs tools sees to the others.
	MinIsolation events.Isolation
	// Writable are further directories in which tools may write, such as the
	// worker's own for invocations. No executable may lie in one.
	Writable []string
}

// FileReadConfig configures the tool file_read.
type FileReadConfig struct {
	Enabled      bool
	AllowedPaths []string // directories
}

// FileWriteConfig configures the tool file_write.
type FileWriteConfig struct {
	Enabled      bool
	AllowedPaths []string // directories
}

// FileEditConfig configures the tool file_edit.
type FileEditConfig struct {
	Enabled      bool
	AllowedPaths []string // directories
}

// EchoConfig configures the tool echo.
type EchoConfig struct {
	Enabled bool
	Tier    events.Tier // 0: T0
	Reply   string      // what it answers; empty: the text that it was given
}

// Build makes the tools that are enabled, and names every fault of the
// configuration.
func Build(c Config) ([]Tool, error) {
	var tools []Tool
	var faults []error
	add := func(enabled bool, name string, build func() (Tool, error)) {
		if !enabled {
			return
		}
		t, err := build()
		if err != nil {
			faults = append(faults, fmt.Errorf("tools.%s: %w", name, err))
			return
		}
		tools = append(tools, t)
	}
	add(c.FileRead.Enabled, "file_read", func() (Tool, error) { return newFileRead(c.FileRead) })
	add(c.FileWrite.Enabled, "file_write", func() (Tool, error) { return newFileWrite(c) })
	add(c.FileEdit.Enabled, "file_edit", func() (Tool, error) { return newFileEdit(c) })
	add(c.Shell.Enabled, "shell", func() (Tool, error) { return newShell(c) })
	add(c.Shell.Enabled && c.Shell.Commit == CommitReview, "shell_commit", func() (Tool, error) { return newShellCommit(c) })
	add(c.Echo.Enabled, "echo", func() (Tool, error) { return newEcho(c.Echo) })
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return tools, nil
}

// BuiltIn returns the names of all tools of this package, enabled or not.
func BuiltIn() []string {
	return []string{"echo", "file_edit", "file_read", "file_write", "shell", "shell_commit"}
}
