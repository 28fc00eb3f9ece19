package main

import (
	"context"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/pkg/events"
)

// A filter selects facts by the tokens of their subjects.
type filter struct{ session, kind string }

func (f *filter) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.session, "session", "", "of this session only (system: of none)")
	cmd.Flags().StringVar(&f.kind, "kind", "", "of this kind only: session, inference, tool, model, worker, command or audit")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kinds(), cobra.ShellCompDirectiveNoFileComp))
}

func kinds() []string {
	var all []string
	for _, k := range []events.Kind{events.KindSession, events.KindInference, events.KindTool, events.KindModel,
		events.KindWorker, events.KindCommand, events.KindAudit} {
		all = append(all, string(k))
	}
	return all
}

// subject is the filter for NATS.
func (f filter) subject() (string, error) {
	for _, t := range []struct{ name, token string }{{"session", f.session}, {"kind", f.kind}} {
		if t.token == "" {
			continue
		}
		if err := events.CheckToken(t.token); err != nil {
			return "", cli.Usage("--%s %w", t.name, err)
		}
	}
	switch {
	case f.session == "" && f.kind == "":
		return events.PrefixFact + ".>", nil
	case f.kind == "":
		return events.SessionFilter(events.SessionID(f.session)), nil
	case f.session == "":
		return events.KindFilter("*", events.Kind(f.kind)), nil
	}
	return events.KindFilter(events.SessionID(f.session), events.Kind(f.kind)), nil
}

func newTail(a *app) *cobra.Command {
	var f filter
	var from uint64
	var last uint64
	cmd := &cobra.Command{
		Use: "tail", Short: "facts as they come",
		Long: `Tail shows facts as they are stored, until Ctrl-C. With --json it writes one
object a line: seq, time, subject, headers, body.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tail(cmd.Context(), f, from, last) },
	}
	f.add(cmd)
	cmd.Flags().Uint64Var(&from, "from", 0, "begin at this sequence of EVENTS")
	cmd.Flags().Uint64VarP(&last, "last", "n", 0, "begin with what the last so many sequences hold")
	cmd.MarkFlagsMutuallyExclusive("from", "last")
	return cmd
}

func (a *app) tail(ctx context.Context, f filter, from, last uint64) error {
	subject, err := f.subject()
	if err != nil {
		return err
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if from == 0 {
		end, err := log.Last(ctx)
		if err != nil {
			return err
		}
		from = end + 1 - min(last, end)
	}
	return log.Follow(ctx, subject, from, func(r events.Record) error { return a.printRecord(r, f.session == "") })
}
