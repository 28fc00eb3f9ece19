package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

func newSay(a *app) *cobra.Command {
	var watch, yes bool
	cmd := &cobra.Command{
		Use: "say <session> <text>", Short: "add a message to a session",
		Long: "Say adds a message. A session that completed or failed goes on with it; one that\nwas cancelled does not. A text of \"-\" is read from stdin.",
		Args: cli.Args("the session", "the text"), ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.say(cmd.Context(), events.SessionID(args[0]), args[1], watch, yes)
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show what comes of it, as bus run does")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "with --watch: approve everything that is asked (YES=1)")
	return cmd
}

func (a *app) say(ctx context.Context, id events.SessionID, text string, watch, yes bool) error {
	text, err := a.text(text)
	if err != nil {
		return err
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ans, err := a.command(ctx, c, events.SessionSay{Session: id, Text: text})
	if err != nil {
		return err
	}
	if !watch {
		return a.tell(ans, "said to %s", id)
	}
	log, err := c.openLog(ctx)
	if err != nil {
		return err
	}
	state, err := fold(ctx, log, id, ans.Seq)
	if err != nil {
		return err
	}
	return a.watchSession(ctx, c, log, state, ans.Seq+1, yes)
}

// simple makes a subcommand that gives one command about a session.
func (a *app) simple(use, short, long, done string, make func(events.SessionID, string) events.Command) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: use + " <session>", Short: short, Long: long, Args: cli.Args("the session"), ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.one(cmd, make(events.SessionID(args[0]), reason), args[0]+" "+done)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is on the log")
	return cmd
}

// one gives one command and says that it is carried out.
func (a *app) one(cmd *cobra.Command, command events.Command, done string) error {
	c, err := a.connect(cmd.Context())
	if err != nil {
		return err
	}
	defer c.close()
	ans, err := a.command(cmd.Context(), c, command)
	if err != nil {
		return err
	}
	return a.tell(ans, "%s", cli.Visible(done))
}

// fold reads a session up to a sequence; 0 is the end.
func fold(ctx context.Context, log reader, id events.SessionID, through uint64) (session.State, error) {
	state := session.State{ID: id}
	records, err := log.ReadFilter(ctx, events.SessionFilter(id), 1, through)
	if err != nil {
		return state, fmt.Errorf("read session %s: %w", id, err)
	}
	for _, r := range records {
		state = session.Evolve(state, r)
	}
	return state, nil
}

// A reader reads facts from the log.
type reader interface {
	ReadFilter(ctx context.Context, filter string, from, through uint64) ([]events.Record, error)
}
