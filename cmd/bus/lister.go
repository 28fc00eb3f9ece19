package main

import (
	"time"

	"github.com/spf13/cobra"

	"correx/internal/cli"
)

// A lister is a subcommand that asks the projector one question and prints the
// rows.
type lister struct {
	use, noun   string // the query, if it is not called as the command is
	short, long string
	none        string // what is said when there is no row
	filters     string // letters of those it has: see [filterFlags]
	columns     []tableColumn
}

// filterFlags adds the flags of a list: s state, e session, o tool, m model,
// x text, t time.
func filterFlags(cmd *cobra.Command, filters string, r *queryRequest) {
	for _, f := range filters {
		switch f {
		case 's':
			cmd.Flags().StringVar(&r.State, "is", "", "only those in this state, such as running")
		case 'e':
			cmd.Flags().StringVar(&r.Session, "session", "", "only those of this session")
		case 'o':
			cmd.Flags().StringVar(&r.Tool, "tool", "", "only those that called this tool")
		case 'm':
			cmd.Flags().StringVar(&r.Model, "model", "", "only those that were started with this model")
		case 'x':
			cmd.Flags().StringVar(&r.Text, "text", "", "only those in which all these words were said; word* is a beginning")
		case 't':
			cmd.Flags().StringVar(&r.Since, "since", "", "only those from then on: a time, a day, or how long ago (90m)")
			cmd.Flags().StringVar(&r.Until, "until", "", "only those before then")
		}
	}
}

// times turns what a person writes into what a query takes.
func (r *queryRequest) times(now time.Time) error {
	for _, f := range []struct {
		name string
		at   *string
	}{{"since", &r.Since}, {"until", &r.Until}} {
		if *f.at == "" {
			continue
		}
		t, err := parseTime(*f.at, now)
		if err != nil {
			return cli.Usage("--%s %q %w", f.name, *f.at, err)
		}
		*f.at = t.UTC().Format(time.RFC3339Nano)
	}
	return nil
}

func (a *app) lister(l lister) *cobra.Command {
	var r queryRequest
	var limit int
	cmd := &cobra.Command{
		Use: l.use, Short: l.short, Long: l.long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listed(cmd, l, r, limit) },
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "at most so many (default: all)")
	filterFlags(cmd, l.filters, &r)
	return cmd
}

// listed asks and prints.
func (a *app) listed(cmd *cobra.Command, l lister, r queryRequest, limit int) error {
	if limit < 0 {
		return cli.Usage("--limit %d: use 1 or more, or 0 for all", limit)
	}
	if err := r.times(time.Now()); err != nil {
		return err
	}
	c, err := a.connect(cmd.Context())
	if err != nil {
		return err
	}
	defer c.close()
	noun := l.noun
	if noun == "" {
		noun = l.use
	}
	items, err := a.query(cmd.Context(), c, noun, r, limit)
	if err != nil {
		return err
	}
	return a.list(items, l.none, l.columns...)
}
