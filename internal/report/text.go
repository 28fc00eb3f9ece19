package report

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"

	"correx/internal/cli"
)

// Text writes the report for a terminal or a file.
func (r Report) Text(out io.Writer, style cli.Style) error {
	w := &writer{bufio.NewWriter(out), style}
	w.line("%s", style.Bold("Report on session "+cli.Line(string(r.Session), 80)))
	w.field("log", "%s of %s, read through event %d", r.Stream, shown(r.Created), r.Through)
	if s := r.Start; s != nil {
		w.field("asked by", "%s at %s, by command %s (event %d)", s.Actor, shown(s.Time), s.Command, s.Seq)
		w.field("settings", "model %s, mode %s, tools %s", or(s.Model, "any"), s.Mode, or(strings.Join(s.Tools, ", "), "as configured"))
		if s.ForkOf != nil {
			w.field("fork of", "session %s at event %d: what happened there up to then is its past", cli.Line(string(s.ForkOf.Session), 80), s.ForkOf.At)
		}
		w.block("task", s.Task)
		w.block("said", s.Say)
		w.block("system", s.System)
	}
	if r.State != "" {
		w.field("state", "%s", strings.TrimSpace(r.State+" "+r.Reason))
	}
	if r.Answer != nil {
		w.block("answer", *r.Answer)
	}
	w.summary(r.Summary)
	w.evidence(r.Evidence)
	for _, s := range r.Steps {
		w.step(s)
	}
	for _, a := range r.Alarms {
		w.line("%s", style.Red(fmt.Sprintf("event %d does not hold: %s: %s", a.Seq, cli.Visible(a.Subject), cli.Visible(a.Reason))))
	}
	return w.out.Flush()
}

// A writer writes lines whose arguments are untrusted.
type writer struct {
	out   *bufio.Writer
	style cli.Style
}

func (w *writer) line(format string, a ...any) { fmt.Fprintf(w.out, format+"\n", a...) }

// field is one line, whatever stands in it.
func (w *writer) field(name, format string, a ...any) {
	text := cli.Line(fmt.Sprintf(format, a...), math.MaxInt)
	if text == "" {
		w.line("  %s", w.style.Dim(name))
		return
	}
	w.line("  %s %s", w.style.Dim(fmt.Sprintf("%-10s", name)), text)
}

// block is a text of several lines.
func (w *writer) block(name, text string) {
	if text == "" {
		return
	}
	if !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
		w.field(name, "%s", strings.TrimSuffix(text, "\n"))
		return
	}
	w.field(name, "")
	w.indented(cli.Visible(text))
}

func (w *writer) indented(text string) {
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		w.line("      %s", l)
	}
}

func (w *writer) summary(s Summary) {
	w.field("calls", "%d: %d succeeded, %d failed, %d never ran, %d open; %d approved by a person, %d by policy or rule",
		s.Calls, s.Succeeded, s.Failed, s.Refused, s.Open, s.ByPeople, s.ByPolicy)
	w.field("inferences", "%d, %d tokens", s.Inferences, s.Tokens)
	w.field("changed", "%s", or(strings.Join(s.Affected, ", "), "nothing"))
}

func (w *writer) evidence(e Evidence) {
	switch {
	case !e.Checked:
		w.field("evidence", "the log was not held against its checkpoints")
	case len(e.Findings) > 0:
		for _, f := range e.Findings {
			w.line("  %s %s", w.style.Dim("evidence  "), w.style.Red(cli.Visible(f)))
		}
	default:
		w.field("evidence", "every event through %d is as it was signed by %s", e.Covered, strings.Join(e.Keys, ", "))
	}
}

func (w *writer) step(s Step) {
	head := fmt.Sprintf("\n%s %s", w.style.Dim(fmt.Sprintf("#%d", s.Seq)), w.style.Dim(shown(s.Time)))
	switch {
	case s.Event != nil:
		w.line("%s %s%s", head, w.style.Bold(cli.Visible(s.Event.What)), cli.Visible(by(s.Event.Actor)))
		w.block("", s.Event.Text)
	case s.Inference != nil:
		i := s.Inference
		w.line("%s %s", head, w.style.Bold(cli.Visible("inference "+i.ID+" "+i.Status)))
		w.field("model", "%s on %s, %d tokens", i.Model, or(i.Worker, "no worker"), i.Tokens)
		for _, c := range i.Calls {
			w.field("wants", "%s", c)
		}
		if len(i.Calls) == 0 {
			w.block("said", i.Said)
		}
		w.block("reason", i.Reason)
	case s.Call != nil:
		w.line("%s %s", head, w.style.Bold(cli.Visible("call "+s.Call.ID+" of "+s.Call.Tool+" "+s.Call.Tier+" "+s.Call.Status)))
		w.call(s.Call)
	}
}

func (w *writer) call(c *Call) {
	w.field("asked by", "%s", c.AskedBy)
	w.block("parameters", string(c.Parameters))
	if p := c.Preview; p != nil {
		w.field("preview", "by %s: %s", p.Worker, validity(p))
		w.notes(p.Notes)
		w.diff("would do", p.Diff)
	}
	if q := c.Question; q != nil {
		w.field("question", "%s: %s; digest %s, until %s", shown(q.Time), q.Why, q.Digest, shown(q.Deadline))
		w.notes(q.Notes)
	}
	if a := c.Answer; a != nil {
		w.answer(a)
	}
	if r := c.Run; r != nil {
		w.field("ran", "%s on %s, isolation %s, attempt %d", shown(r.Time), r.Worker, r.Isolation, r.Attempt)
	}
	if r := c.Result; r != nil {
		w.result(r)
	}
	for _, f := range c.Recovered {
		w.field("recovered", "%s: %s", f.Path, f.Effects)
	}
	for _, r := range c.Records {
		w.field("event", "%d %s %s", r.Seq, r.Fact, r.Hash)
	}
}

func (w *writer) notes(notes []string) {
	for _, n := range notes {
		w.field("note", "%s", n)
	}
}

func (w *writer) diff(name, diff string) {
	if diff != "" {
		w.field(name, "")
		w.indented(w.style.Diff(diff))
	}
}

func (w *writer) answer(a *Answer) {
	text := a.What
	if a.By != "" {
		text += " by " + a.By
	}
	text += by(a.Actor) + " at " + shown(a.Time)
	if a.Waited > 0 {
		text += ", after " + took(a.Waited)
	}
	w.field("answer", "%s", text)
	w.block("reason", a.Reason)
	if a.What == "approved" {
		w.field("digest", "%s, which %s that of what stands here", a.Digest, isOrNot(a.Matches))
		w.field("signature", "%s", a.Signature)
	}
}

func (w *writer) result(r *Result) {
	text := r.Status + " at " + shown(r.Time)
	if r.ExitCode != nil {
		text += fmt.Sprintf(", exit status %d after %s, isolation %s", *r.ExitCode, took(r.Duration), or(r.Isolation, "not said"))
	}
	w.field("result", "%s", text)
	w.block("reason", r.Reason)
	if r.Effects != "" {
		w.field("effects", "%s", r.Effects)
	}
	if len(r.Affected) > 0 {
		w.field("affected", "%s", strings.Join(r.Affected, ", "))
	}
	w.diff("changed", r.Diff)
	w.block("output", r.Output)
	for _, a := range r.Artifacts {
		w.field("artifact", "%s, %s, SHA-256 %s", a.Name, cli.Bytes(int(a.Size)), a.SHA256)
	}
}

func validity(p *Preview) string {
	if !p.Valid {
		return "invalid: " + p.Reason
	}
	if len(p.Affected) == 0 {
		return "valid"
	}
	return "valid, would change " + strings.Join(p.Affected, ", ")
}

func isOrNot(is bool) string {
	if is {
		return "is"
	}
	return "is NOT"
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func by(actor string) string {
	if actor == "" {
		return ""
	}
	return " by " + actor
}
