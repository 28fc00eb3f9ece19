// Package cli is what the four commands have in common: how a process starts
// and ends, its flags, what it may write to a terminal, how it asks a person,
// and how it keeps other processes running.
//
// Text that comes from models, tools or files is untrusted: [Visible] makes its
// control and invisible characters show before it reaches a terminal. Every
// renderer here does so by itself.
package cli

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// An Env is the process around a command, so that a test can be one.
type Env struct {
	Args   []string // without the program's name
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Lookup func(string) (string, bool) // the environment

	OutTerminal bool // Stdout is a terminal
	ErrTerminal bool // Stderr is one
	Keys        Keys // how to ask a person; nil: nobody is there
}

// OSEnv is the real process's.
func OSEnv() Env {
	env := Env{
		Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv,
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if term.IsTerminal(int(os.Stdin.Fd())) && env.ErrTerminal {
		env.Keys = NewTerminal(os.Stdin)
	}
	return env
}

// Getenv returns a variable, or nothing.
func (e Env) Getenv(name string) string {
	if e.Lookup == nil {
		return ""
	}
	v, _ := e.Lookup(name)
	return v
}

// OutStyle is how Stdout may be coloured: not at all unless it is a terminal
// and NO_COLOR is not set.
func (e Env) OutStyle() Style { return Style{e.OutTerminal && e.colours()} }

// ErrStyle is how Stderr may be coloured.
func (e Env) ErrStyle() Style { return Style{e.ErrTerminal && e.colours()} }

func (e Env) colours() bool { return e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb" }

// OutText returns untrusted text as it may be written to Stdout: visible on a
// terminal, as it is elsewhere.
func (e Env) OutText(s string) string {
	if e.OutTerminal {
		return Visible(s)
	}
	return s
}

// Logger logs to Stderr from level on.
func (e Env) Logger(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: level}))
}
