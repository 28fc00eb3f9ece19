package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

const diffHelp = `Diff prints the whole unified diff of an invocation, on stdout: of one that
waits, what it would change, as its worker found it; of one that ran, what it did
change. A card shows the beginning of a long one.`

func newDiff(a *app) *cobra.Command {
	var colour bool
	cmd := &cobra.Command{
		Use: "diff <invocation>", Short: "what an invocation would change, or changed", Long: diffHelp,
		Example: "  bus diff s-4k2/t1-0\n  bus diff --color t1-0-c | less -R",
		Args:    cli.Args("the invocation"), ValidArgsFunction: a.completeWaiting,
		RunE: func(cmd *cobra.Command, args []string) error { return a.diff(cmd.Context(), args[0], colour) },
	}
	cmd.Flags().BoolVar(&colour, "color", false, "colour it though stdout is no terminal")
	return cmd
}

func (a *app) diff(ctx context.Context, arg string, colour bool) error {
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	records, err := storiesOf(ctx, log, arg)
	if err != nil {
		return err
	}
	i, err := only(arg, records)
	if err != nil {
		return err
	}
	text, ran := diffOf(i)
	switch {
	case a.flags.JSON:
		return cli.JSON(a.env.Stdout, map[string]any{"session": i.Session, "invocation": i.ID, "status": i.Status(), "ran": ran, "diff": text})
	case text == "":
		fmt.Fprintf(a.env.Stderr, "%s/%s has no diff; it is %s\n", i.Session, i.ID, i.Status())
		return nil
	case a.env.OutTerminal || colour:
		style := a.env.OutStyle()
		if colour {
			style = cli.Coloured(true)
		}
		_, err = fmt.Fprintln(a.env.Stdout, style.Diff(text))
	default:
		_, err = io.WriteString(a.env.Stdout, text)
	}
	return err
}

// diffOf is what an invocation changed, if it ran, or else what it would change.
func diffOf(i session.Invocation) (text string, ran bool) {
	if r := i.Receipt(); r != nil && (r.Diff != "" || i.Previewed == nil) {
		return r.Diff, true
	}
	if i.Previewed != nil {
		return i.Previewed.Diff, false
	}
	return "", false
}

// only folds the one invocation that records are of.
func only(arg string, records []events.Record) (session.Invocation, error) {
	var i session.Invocation
	for _, r := range records {
		if i.Session != "" && r.Aggregate.Session != i.Session {
			return i, cli.Usage("%s is in several sessions; write <session>/<invocation>", arg)
		}
		i, _ = i.Step(r)
		i.Session, i.ID = r.Aggregate.Session, events.ToolInvocationID(r.Aggregate.ID)
	}
	if i.Session == "" {
		return i, fmt.Errorf("%s: there is no such invocation; bus approvals lists what waits", arg)
	}
	return i, nil
}
