package main

import (
	"strings"

	"github.com/spf13/cobra"

	"correx/internal/cli"
)

func newSearch(a *app) *cobra.Command {
	var r queryRequest
	var limit int
	l := lister{use: "search", none: "nothing has all these words",
		columns: []tableColumn{plain("SEQ", "seq"), plain("SESSION", "session"), plain("IN", "source"), plain("ID", "id"),
			{"TEXT", func(r row) string { return cli.Line(r.text("text"), 80) }}}}
	cmd := &cobra.Command{
		Use: "search <words>", Short: "find what was said: tasks, messages, answers, outputs",
		Long: `Search asks the projector for texts that have all the words, the newest first. A
word that ends with * is a beginning. bus show <session> shows where a text stands.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Text = strings.Join(args, " ")
			return a.listed(cmd, l, r, limit)
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most so many; 0 for all")
	filterFlags(cmd, "et", &r)
	return cmd
}
