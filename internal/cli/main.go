package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses of every command. A subcommand may have more, which its help
// names.
const (
	StatusOK          = 0
	StatusFailed      = 1
	StatusUsage       = 2
	StatusInterrupted = 130
)

// Main runs a command as the process: it ends it with the status that [Run]
// returns. SIGINT and SIGTERM end the context; a second one ends the process.
func Main(name string, build func(Env) *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, name, OSEnv(), build))
}

// Run runs a command in env and returns its exit status. An error is printed
// once, here.
func Run(ctx context.Context, name string, env Env, build func(Env) *cobra.Command) int {
	root := build(env)
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	ran := false
	observe(root, &ran)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !ran { // cobra itself found the fault, in the arguments
		err = &usageError{err}
	}
	return report(ctx, env, name, cmd, err)
}

// observe notes when a subcommand's own code is reached.
func observe(c *cobra.Command, ran *bool) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			*ran = true
			return run(cmd, args)
		}
	}
	for _, sub := range c.Commands() {
		observe(sub, ran)
	}
}

// report prints err and maps it to a status.
func report(ctx context.Context, env Env, name string, cmd *cobra.Command, err error) int {
	var exit *exitError
	var usage *usageError
	switch {
	case err == nil:
		return StatusOK
	case errors.As(err, &exit):
		if exit.err != nil {
			fmt.Fprintf(env.Stderr, "%s: %s\n", name, Visible(exit.err.Error()))
		}
		return exit.status
	case errors.As(err, &usage):
		fmt.Fprintf(env.Stderr, "%s: %s\n%s --help says more\n", name, Visible(err.Error()), cmd.CommandPath())
		return StatusUsage
	case ctx.Err() != nil:
		fmt.Fprintf(env.Stderr, "%s: interrupted\n", name)
		return StatusInterrupted
	}
	fmt.Fprintf(env.Stderr, "%s: %s\n", name, Visible(err.Error()))
	return StatusFailed
}

// An exitError ends the process with a status of its own.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// Exit returns the error that makes the process end with a status. Of a nil err
// nothing is printed.
func Exit(status int, err error) error { return &exitError{status, err} }

// A usageError is a fault in the arguments.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// Usage returns the error of arguments that are wrong: exit status 2.
func Usage(format string, a ...any) error { return &usageError{fmt.Errorf(format, a...)} }

// Group makes a command that only has subcommands.
func Group(use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: strings.TrimSpace(long),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}
