package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

func newShow(a *app) *cobra.Command {
	var at uint64
	var follow, yes bool
	cmd := &cobra.Command{
		Use: "show <session>", Short: "what happened in a session, step by step",
		Long: `Show reads a session from the log: how it stands, and its time line. The log is
all that it needs; no other process must run but the server.`,
		Args: cli.Args("the session"), ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.show(cmd.Context(), events.SessionID(args[0]), at, follow, yes)
		},
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "as it was at this sequence of EVENTS")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on watching, as bus run does")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "with --follow: approve everything that is asked (YES=1)")
	cmd.MarkFlagsMutuallyExclusive("at", "follow")
	return cmd
}

func (a *app) show(ctx context.Context, id events.SessionID, at uint64, follow, yes bool) error {
	if err := events.CheckToken(string(id)); err != nil {
		return cli.Usage("session %w", err)
	}
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	log, err := c.openLog(ctx)
	if err != nil {
		return err
	}
	wait := a.env.Progress("reading session " + string(id))
	records, err := log.ReadFilter(ctx, events.SessionFilter(id), 1, at)
	wait.Stop()
	if err != nil {
		return fmt.Errorf("show session %s: %w", id, err)
	}
	if len(records) == 0 {
		return fmt.Errorf("show session %s: the log has nothing of it", id)
	}
	state := session.State{ID: id}
	for _, r := range records {
		state = session.Evolve(state, r)
	}
	if err := a.showState(state, records); err != nil {
		return err
	}
	if !follow {
		return nil
	}
	if ended(state) {
		return a.outcome(state, false)
	}
	return a.watchSession(ctx, c, state, records[len(records)-1].Seq+1, yes)
}

// sessionSummary is a session as JSON.
type sessionSummary struct {
	Session events.SessionID `json:"session"`
	State   session.Status   `json:"state"`
	Task    string           `json:"task,omitempty"`
	Model   events.ModelID   `json:"model,omitempty"`
	Answer  *string          `json:"answer,omitempty"`
	Code    string           `json:"code,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Tools   []toolSummary    `json:"tools,omitempty"`
	Alarms  []session.Alarm  `json:"alarms,omitempty"`
	Seq     uint64           `json:"seq"` // the last record that was read
	Records []recordJSON     `json:"records,omitempty"`
}

type toolSummary struct {
	Invocation events.ToolInvocationID      `json:"invocation"`
	Tool       string                       `json:"tool"`
	Status     session.ToolInvocationStatus `json:"status"`
}

func sessionJSON(s session.State) sessionSummary {
	j := sessionSummary{Session: s.ID, State: s.Status, Seq: s.Seq, Alarms: s.Alarms}
	if s.Started != nil {
		j.Task, j.Model = s.Started.Task, s.Started.Model
	}
	if text, ok := s.Answer(); ok {
		j.Answer = &text
	}
	switch f := s.Outcome.(type) {
	case events.SessionFailed:
		j.Code, j.Reason = string(f.Code), f.Reason
	case events.SessionCancelled:
		j.Reason = f.Reason
	}
	for _, i := range s.Tools {
		t := toolSummary{Invocation: i.ID, Status: i.Status()}
		if i.Requested != nil {
			t.Tool = i.Requested.Request.Tool
		}
		j.Tools = append(j.Tools, t)
	}
	return j
}

func (a *app) showState(s session.State, records []events.Record) error {
	if a.flags.JSON {
		j := sessionJSON(s)
		for _, r := range records {
			j.Records = append(j.Records, asJSON(r))
		}
		return cli.JSON(a.env.Stdout, j)
	}
	style, out := a.env.OutStyle(), a.env.Stdout
	j := sessionJSON(s)
	fmt.Fprintf(out, "%s  %s\n", style.Bold(string(s.ID)), statusText(style, s.Status))
	if j.Task != "" {
		fmt.Fprintf(out, "%s\n", cli.Visible(j.Task))
	}
	fmt.Fprintln(out)
	for _, r := range records {
		if err := a.printRecord(r, false); err != nil {
			return err
		}
	}
	if j.Answer != nil {
		fmt.Fprintf(out, "\n%s\n", a.env.OutText(*j.Answer))
	}
	for _, i := range s.Tools {
		if i.Status() != session.ApprovalRequested {
			continue
		}
		card, err := cardOf(i)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\n%s", card.Render(style, time.Now()))
	}
	return nil
}

func statusText(s cli.Style, st session.Status) string {
	switch st {
	case session.SessionCompleted:
		return s.Green(string(st))
	case session.SessionFailed, session.SessionCancelled:
		return s.Red(string(st))
	}
	return s.Yellow(string(st))
}
