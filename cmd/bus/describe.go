package main

import (
	"fmt"
	"strings"
	"time"

	"correx/internal/cli"
	"correx/pkg/events"
)

// textLength is how much of a text one line of a story shows.
const textLength = 160

// describe says in one line what a record says. It returns "" for what a reader
// need not see.
func describe(r events.Record, s cli.Style) string {
	if r.Err != nil {
		return s.Red("does not hold: ") + cli.Line(r.Err.Error(), textLength)
	}
	id := cli.Visible(r.Aggregate.ID)
	switch r.Aggregate.Kind {
	case events.KindSession:
		return describeSession(r.Fact, s)
	case events.KindInference:
		return s.Dim(id+" ") + describeInference(r.Fact, s)
	case events.KindTool:
		return s.Dim(id+" ") + describeTool(r.Fact, s)
	}
	return s.Dim(id+" ") + describeSystem(r.Fact, s)
}

func line(s string) string { return cli.Line(s, textLength) }

// because puts a reason behind a word.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + line(reason)
}

func describeSession(f events.Fact, s cli.Style) string {
	switch f := f.(type) {
	case events.SessionStarted:
		text := s.Bold("task ") + line(f.Task)
		if f.ForkOf != nil {
			text = s.Bold("forked ") + fmt.Sprintf("from %s at %d; ", line(string(f.ForkOf.Session)), f.ForkOf.At) + text
		}
		if f.Say != "" {
			text += "; " + s.Bold("user ") + line(f.Say)
		}
		return text
	case events.MessageAdded:
		return s.Bold(line(string(f.Role))+" ") + line(f.Text)
	case events.StageEntered:
		return s.Dim("── " + line(string(f.Stage)))
	case events.ApprovalRuleGranted:
		what := "with these parameters"
		if f.Parameters == "" {
			what = "with any parameters"
		}
		return fmt.Sprintf("%s %s runs without a question until %s", line(f.Tool), what, clock(f.Until))
	case events.SessionPaused:
		return s.Yellow("paused") + because(f.Reason)
	case events.SessionResumed:
		return s.Green("resumed") + because(f.Reason)
	case events.SessionCompleted:
		return s.Green("completed")
	case events.SessionFailed:
		return s.Red("failed ("+line(string(f.Code))+")") + because(f.Reason)
	case events.SessionCancelled:
		return s.Yellow("cancelled") + because(f.Reason)
	}
	return string(f.FactName())
}

func describeInference(f events.Fact, s cli.Style) string {
	switch f := f.(type) {
	case events.InferenceRequested:
		text := "asks " + line(string(f.Model))
		if len(f.Withdrawn) > 0 {
			text += ", without " + line(strings.Join(f.Withdrawn, ", "))
		}
		if f.FinalOnly {
			text += ", for an answer only"
		}
		return s.Dim(text)
	case events.InferenceStarted:
		return s.Dim("taken on by " + line(string(f.Worker)) + attempt(f.Attempt))
	case events.InferenceCompleted:
		cost := s.Dim(fmt.Sprintf(" (%d tokens, %s)", f.Usage.Total, short(f.Latency)))
		if f.Reply.Final != nil {
			return s.Cyan("answers ") + line(*f.Reply.Final) + cost
		}
		var calls []string
		for _, c := range f.Reply.Calls {
			calls = append(calls, line(c.Tool+" "+string(c.Arguments)))
		}
		return s.Cyan("wants ") + strings.Join(calls, "; ") + cost
	case events.InferenceFailed:
		return s.Red("failed ("+line(string(f.Code))+")") + because(f.Reason)
	}
	return string(f.FactName())
}

func describeTool(f events.Fact, s cli.Style) string {
	switch f := f.(type) {
	case events.ToolInvocationRequested:
		review := ""
		if f.Follows != "" {
			review = s.Bold("review of "+line(string(f.Follows))) + ": "
		}
		return review + s.Bold(line(f.Request.Tool)) + " " + f.Tier.String() + " " + line(string(f.Request.Parameters))
	case events.ToolPreviewed:
		if !f.Valid {
			return s.Red("invalid") + because(f.Reason)
		}
		text := "previewed, would change " + counted(len(f.Affected), "file")
		if len(f.Notes) > 0 {
			text += s.Dim(" (" + line(strings.Join(f.Notes, "; ")) + ")")
		}
		return text
	case events.ApprovalRequested:
		notes := ""
		if len(f.Notes) > 0 {
			notes = s.Dim(" (" + line(strings.Join(f.Notes, "; ")) + ")")
		}
		return s.Yellow("waits for approval") + " until " + clock(f.Deadline) + because(f.Why) + notes
	case events.ApprovalGranted:
		return s.Green("approved") + " by " + who(f) + because(f.Reason)
	case events.ApprovalDenied:
		return s.Red("denied") + by(f.Actor) + because(f.Reason)
	case events.ApprovalExpired:
		return s.Red("expired") + ": nobody answered until " + clock(f.Deadline)
	}
	return describeRun(f, s)
}

func who(f events.ApprovalGranted) string {
	if f.By == "person" {
		return line(string(f.Actor))
	}
	return line(f.By)
}

func by(a events.ActorID) string {
	if a == "" {
		return ""
	}
	return " by " + line(string(a))
}

func describeRun(f events.Fact, s cli.Style) string {
	switch f := f.(type) {
	case events.ToolExecutionStarted:
		return s.Dim("runs on " + line(string(f.Worker)) + attempt(f.Attempt) + ", isolation " + line(string(f.Isolation)))
	case events.ToolExecutionCompleted:
		text := s.Green("done") + s.Dim(" ("+short(f.Receipt.Duration)+")") + because(f.Receipt.Output)
		if u := f.Receipt.FollowUp; u != nil {
			text += s.Yellow(" [its changes wait for a review by " + line(u.Tool) + "]")
		}
		return text
	case events.ToolExecutionFailed:
		text := s.Red("failed") + because(f.Reason)
		if f.Effects != "" && f.Effects != events.EffectsNone {
			text += s.Yellow(" [effects: " + line(string(f.Effects)) + "]")
		}
		return text
	case events.ToolExecutionRejected:
		return s.Red("rejected") + because(f.Reason)
	case events.CancelRequested:
		return s.Yellow("is to stop") + because(f.Reason)
	case events.Recovered:
		return "files after a late rollback: " + counted(len(f.Files), "file")
	}
	return string(f.FactName())
}

func describeSystem(f events.Fact, s cli.Style) string {
	switch f := f.(type) {
	case events.WorkerStarted:
		return s.Green(line(string(f.Role))+" started") + fmt.Sprintf(" on %s, %s, %s",
			line(f.Host), counted(len(f.Tools), "tool"), counted(len(f.Models), "model"))
	case events.WorkerStopped:
		return s.Yellow("stopped") + because(f.Reason)
	case events.ModelLoadRequested:
		return "is to be loaded: " + line(string(f.Model))
	case events.ModelLoaded:
		return s.Green("loaded ") + line(string(f.Model)) + s.Dim(" ("+short(f.Latency)+")")
	case events.ModelUnloadRequested:
		return "is to be unloaded: " + line(string(f.Model))
	case events.ModelUnloaded:
		return "unloaded " + line(string(f.Model)) + because(f.Reason)
	case events.ModelCrashed:
		return s.Red("crashed ") + line(string(f.Model)) + fmt.Sprintf(" (exit status %d %s)", f.ExitCode, line(f.Signal))
	case events.ModelLoadFailed:
		return s.Red("not loaded ") + line(string(f.Model)) + because(f.Reason)
	case events.CommandRejected:
		return s.Red("rejected ") + line(f.Subject) + because(strings.Join(f.Reasons, "; "))
	case events.AuditCheckpoint:
		return fmt.Sprintf("checkpoint through %d", f.Through)
	}
	return string(f.FactName())
}

func attempt(n int) string {
	if n <= 1 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// short is a duration with at most three digits that count.
func short(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// clock is a time of day, for people.
func clock(t time.Time) string {
	if t.IsZero() {
		return "for ever"
	}
	return t.Local().Format("15:04:05")
}
