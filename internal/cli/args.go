package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// Args wants exactly the arguments that are named.
func Args(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return Usage("%s is missing", strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return Usage("%q is too much; put what has spaces into quotes", args[len(names)])
		}
		return nil
	}
}

// Some wants at least one argument of a kind.
func Some(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usage("%s is missing", name)
		}
		return nil
	}
}
