package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/schema"
)

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "schema [name]", Short: "JSON Schemas of commands and facts",
		Long:    "Schema prints the JSON Schema of a command's or fact's body. Without a name it\nlists all names; with --json and no name it prints all schemas in one object.",
		Example: "  bus schema tool.approve\n  bus schema session.started",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return schema.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.schemas()
			}
			text, err := schema.For(args[0])
			if err != nil {
				return cli.Usage("%w", err)
			}
			_, err = fmt.Fprintf(a.env.Stdout, "%s\n", text)
			return err
		},
	}
}

func (a *app) schemas() error {
	all := map[string]any{}
	for _, name := range schema.Names() {
		if !a.flags.JSON {
			fmt.Fprintln(a.env.Stdout, name)
			continue
		}
		text, err := schema.For(name)
		if err != nil {
			return err
		}
		all[name] = text
	}
	if a.flags.JSON {
		return cli.JSON(a.env.Stdout, all)
	}
	return nil
}
