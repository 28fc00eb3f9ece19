package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

func newInfer(a *app) *cobra.Command {
	var want events.InferenceRun
	cmd := &cobra.Command{
		Use: "infer <text>", Short: "ask a model once, with no tools and no loop",
		Long: "Infer asks a model once and prints what it says. A text of \"-\" is read from stdin.",
		Args: cli.Args("the text"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.infer(cmd.Context(), want, args[0])
		},
	}
	addModelFlags(cmd, &want.Model, &want.Capability, &want.Generation)
	return cmd
}

func (a *app) infer(ctx context.Context, want events.InferenceRun, text string) error {
	task, err := a.text(text)
	if err != nil {
		return err
	}
	want.Task = task
	if faults := want.Check(); len(faults) > 0 {
		return cli.Usage("%s", strings.Join(faults, "; "))
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ans, err := a.command(ctx, c, want)
	if err != nil {
		return err
	}
	w := a.watcher(c, session.State{ID: ans.Session}, false)
	w.inference = ans.Inference
	of := events.Aggregate{Session: ans.Session, Kind: events.KindInference, ID: string(ans.Inference)}
	var done session.Inference
	_, err = w.watch(ctx, log, of.Filter(), 1, func(s session.State, _ events.Record) bool {
		done, _ = s.Inference(ans.Inference)
		return done.Status().Ended()
	})
	if err != nil {
		return err
	}
	if done.Done == nil {
		return cli.Exit(cli.StatusFailed, nil) // the story has said why
	}
	if a.flags.JSON {
		return nil
	}
	_, err = fmt.Fprintln(a.env.Stdout, a.env.OutText(said(done.Done.Reply)))
	return err
}

// said is what a reply says to a person.
func said(r events.Reply) string {
	if r.Final != nil {
		return *r.Final
	}
	return r.Text
}
