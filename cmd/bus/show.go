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

const showHelp = `Show reads a session from the log: how it stands, and its time line. The log is
all that it needs; no other process must run but the server.

With --at it shows the session as it was at a point, with the questions that
waited then; with --diff, what changed from one point to another, or to the end.
A point is a sequence of EVENTS, a time (2026-01-02T15:04:05Z, or 2026-01-02 15:04
in local time), the beginning of a day (2026-01-02), or how long ago it is (10m).`

// A showing is what of a session is to be shown.
type showing struct {
	session events.SessionID
	at      string // a point; empty: the end
	diff    bool
	points  []string // with diff: from, and to if it is not the end
	follow  bool
	yes     bool
}

func newShow(a *app) *cobra.Command {
	var w showing
	var prompt string
	cmd := &cobra.Command{
		Use: "show <session>", Short: "what happened in a session, step by step", Long: showHelp,
		Example: "  bus show s-4k2 --at 120\n  bus show s-4k2 --diff 120 2026-01-02T15:04:05Z\n  bus show s-4k2 --diff 10m",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case !w.diff:
				return cli.Args("the session")(cmd, args)
			case len(args) == 2:
				return nil // to the end
			}
			return cli.Args("the session", "the point to begin at", "the point to end at")(cmd, args)
		},
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("prompt") {
				return a.showPrompt(cmd.Context(), events.SessionID(args[0]), events.InferenceID(prompt))
			}
			w.session, w.points = events.SessionID(args[0]), args[1:]
			return a.show(cmd.Context(), w)
		},
	}
	f := cmd.Flags()
	f.StringVar(&w.at, "at", "", "as it was at this `point`")
	f.BoolVar(&w.diff, "diff", false, "what changed between two points, which follow the session")
	f.BoolVarP(&w.follow, "follow", "f", false, "go on watching, as bus run does")
	f.BoolVarP(&w.yes, "yes", "y", false, "with --follow: approve everything that is asked (YES=1)")
	f.StringVar(&prompt, "prompt", "", "what this `inference` was told, packed again and held against what is recorded")
	cmd.MarkFlagsMutuallyExclusive("at", "follow", "diff", "prompt")
	_ = cmd.RegisterFlagCompletionFunc("at", cobra.NoFileCompletions) // the flag is there
	return cmd
}

func (a *app) show(ctx context.Context, w showing) error {
	if err := events.CheckToken(string(w.session)); err != nil {
		return cli.Usage("session %w", err)
	}
	points, err := w.parse(time.Now())
	if err != nil {
		return err
	}
	c, log, err := a.connectLog(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	story, err := a.story(ctx, log, w.session)
	if err != nil {
		return err
	}
	switch {
	case w.diff:
		return a.showDiff(story, points)
	case w.at != "":
		return a.showAt(story, points[0])
	}
	state := story.until(len(story.records))
	waits, err := pauseOf(ctx, log, state, time.Now())
	if err != nil {
		return err
	}
	if err := a.showState(state, story.records, time.Now(), nil, waits); err != nil || !w.follow {
		return err
	}
	if ended(state) {
		return a.outcome(state, false)
	}
	return a.watchSession(ctx, c, log, state, story.records[len(story.records)-1].Seq+1, w.yes)
}

// parse reads the points, of which there are as many as the user named.
func (w showing) parse(now time.Time) ([]point, error) {
	texts := w.points
	if w.at != "" {
		texts = []string{w.at}
	}
	var all []point
	for _, text := range texts {
		p, err := parsePoint(text, now)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// sessionSummary is a session as JSON.
type sessionSummary struct {
	Session events.SessionID `json:"session"`
	State   session.Status   `json:"state"`
	Task    string           `json:"task,omitempty"`
	Model   events.ModelID   `json:"model,omitempty"`
	ForkOf  *events.Fork     `json:"fork_of,omitempty"`
	Answer  *string          `json:"answer,omitempty"`
	Code    string           `json:"code,omitempty"`
	Reason  string           `json:"reason,omitempty"`
	Tools   []toolSummary    `json:"tools,omitempty"`
	Waiting []waitingSummary `json:"approvals,omitempty"` // questions that wait
	Pause   *pause           `json:"waits,omitempty"`     // what the session waits for
	Alarms  []session.Alarm  `json:"alarms,omitempty"`
	Seq     uint64           `json:"seq"`          // the last record that was read
	At      *moment          `json:"at,omitempty"` // with --at: the point
	Records []recordJSON     `json:"records,omitempty"`
}

type toolSummary struct {
	Invocation events.ToolInvocationID      `json:"invocation"`
	Tool       string                       `json:"tool"`
	Status     session.ToolInvocationStatus `json:"status"`
}

// waitingSummary is a question that waits for a person.
type waitingSummary struct {
	Invocation events.ToolInvocationID `json:"invocation"`
	Tool       string                  `json:"tool"`
	Tier       events.Tier             `json:"tier"`
	By         string                  `json:"requested_by"` // an actor, or "model"
	Parameters events.Raw              `json:"parameters,omitempty"`
	Digest     string                  `json:"digest"`
	Deadline   time.Time               `json:"deadline"`
	Why        string                  `json:"why"`
}

func waitingJSON(i session.Invocation) waitingSummary {
	q := waitingSummary{Invocation: i.ID, Tool: i.Asked.Tool, Tier: i.Asked.Tier, By: "model",
		Digest: i.Asked.Digest, Deadline: i.Asked.Deadline.UTC(), Why: i.Asked.Why}
	if i.Requested.Actor != "" {
		q.By = string(i.Requested.Actor)
	}
	q.Parameters = i.Requested.Request.Parameters
	return q
}

func sessionJSON(s session.State) sessionSummary {
	j := sessionSummary{Session: s.ID, State: s.Status, Seq: s.Seq, Alarms: s.Alarms}
	if s.Started != nil {
		j.Task, j.Model, j.ForkOf = s.Started.Task, s.Started.Model, s.Started.ForkOf
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
		if i.Status() == session.ApprovalRequested {
			j.Waiting = append(j.Waiting, waitingJSON(i))
		}
	}
	return j
}

// showState shows a session as it stood at now; at is the point, if one was asked
// for.
func (a *app) showState(s session.State, records []events.Record, now time.Time, at *moment, waits *pause) error {
	j := sessionJSON(s)
	j.At, j.Pause = at, waits
	if a.flags.JSON {
		for _, r := range records {
			j.Records = append(j.Records, asJSON(r))
		}
		return cli.JSON(a.env.Stdout, j)
	}
	style, out := a.env.OutStyle(), a.env.Stdout
	fmt.Fprintf(out, "%s  %s\n", style.Bold(string(s.ID)), statusText(style, s.Status))
	if at != nil {
		fmt.Fprintf(out, "%s\n", style.Dim("as it was at "+at.String()+at.since()))
	}
	if j.ForkOf != nil {
		fmt.Fprintf(out, "%s\n", style.Dim(fmt.Sprintf("its past: bus show %s --at %d", j.ForkOf.Session, j.ForkOf.At)))
	}
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
		fmt.Fprintf(out, "\n%s", card.Render(style, now))
	}
	if waits != nil {
		fmt.Fprintf(out, "\n%s\n", style.Dim(waits.String()))
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
