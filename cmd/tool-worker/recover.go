package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/toolworker"
	"correx/pkg/sandbox"
)

func newRecoverCommand(p *program) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use:   "recover",
		Short: "finish what a crashed worker left in its journal",
		Long: `Recover takes back what a crashed worker had begun, publishes the results that
it had not yet told, and ends. A worker that starts under the same name does so
by itself; use recover when it will not start again.

With --dry-run it only lists what the journals hold, each file, directory and link
that would be taken back, and the directories of calls that are left: of the
worker called --name, else of all on this machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dry {
				return p.list()
			}
			return p.recover(cmd)
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only list what there is")
	return c
}

func (p *program) recover(cmd *cobra.Command) error {
	cfg, logger, err := p.load(cli.Changed(cmd, nil), slog.LevelInfo)
	if err != nil {
		return err
	}
	if cfg.Worker.Name == "" {
		return cli.Usage("say --name; tool-worker recover --dry-run lists the workers of this machine")
	}
	o, err := options(cfg, logger)
	if err != nil {
		return err
	}
	defer o.Home.Close()
	return toolworker.Recover(cmd.Context(), o)
}

func (p *program) list() error {
	cfg, logger, err := p.load(cli.Changed(nil, nil), slog.LevelWarn)
	if err != nil {
		return err
	}
	all, err := toolworker.ListPending(cfg.State, cfg.Tools.Sandbox.Root, cfg.Worker.Name, logger)
	if err != nil {
		return err
	}
	if p.flags.JSON {
		return json.NewEncoder(p.env.Stdout).Encode(all)
	}
	if err := p.table(all); err != nil {
		return err
	}
	p.details(all)
	return nil
}

// table has a line for each call.
func (p *program) table(all []toolworker.Pending) error {
	w := tabwriter.NewWriter(p.env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WORKER\tSESSION\tINVOCATION\tTOOL\tSTATE\tWHAT A START DOES")
	for _, worker := range all {
		if worker.InUse {
			fmt.Fprintf(w, "%s\t-\t-\t-\tin use\tit is running\n", worker.Worker)
		}
		for _, e := range worker.Entries {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", worker.Worker, e.Key.Session, e.Key.Invocation,
				p.env.OutText(e.Tool), e.State, remedy(e))
		}
	}
	return w.Flush()
}

// details says what is taken back, and what is removed.
func (p *program) details(all []toolworker.Pending) {
	for _, worker := range all {
		for _, e := range worker.Entries {
			if e.State == sandbox.Result {
				continue
			}
			for _, s := range e.Steps {
				if text := stepText(s); text != "" {
					fmt.Fprintf(p.env.Stdout, "%s/%s: %s %s\n", e.Key.Session, e.Key.Invocation, p.env.OutText(s.Path), text)
				}
			}
		}
		for _, dir := range worker.Leftover {
			fmt.Fprintf(p.env.Stdout, "%s: directory of a call, which a start removes: %s\n", worker.Worker, p.env.OutText(dir))
		}
	}
}

// stepText says what becomes of one change; empty if it was not made.
func stepText(s sandbox.Step) string {
	var text string
	switch {
	case s.Made == "":
		return ""
	case s.Before == s.After:
		text = fmt.Sprintf("was changed and becomes the %s again that it was", s.Before)
	case s.After == "unknown":
		text = fmt.Sprintf("becomes what it was again (%s)", s.Before)
	case s.Before == "nothing":
		text = fmt.Sprintf("is a new %s and is removed", s.After)
	case s.After == "nothing":
		text = fmt.Sprintf("was removed and becomes a %s again", s.Before)
	default:
		text = fmt.Sprintf("became a %s and becomes a %s again", s.After, s.Before)
	}
	if s.Made == "perhaps" {
		return text + ", if it came to that"
	}
	return text
}

func remedy(e sandbox.Entry) string {
	if e.State == sandbox.Result {
		return "publishes the result"
	}
	return "takes it back and reports a failure"
}
