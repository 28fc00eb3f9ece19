package main

import (
	"fmt"

	"correx/internal/cli"
	"correx/internal/session"
	"correx/pkg/events"
)

// differenceJSON is what changed in a session from one point to another.
type differenceJSON struct {
	Session events.SessionID `json:"session"`
	From    moment           `json:"from"`
	To      moment           `json:"to"`
	Records int              `json:"records"` // of the session, behind From up to To
	session.Difference
}

// showDiff shows what changed between two points; one alone goes to the end.
func (a *app) showDiff(s story, points []point) error {
	from, err := s.find(points[0])
	if err != nil {
		return err
	}
	to := s.end()
	if len(points) == 2 {
		if to, err = s.find(points[1]); err != nil {
			return err
		}
		if to.count < from.count || points[0].after(points[1]) {
			return cli.Usage("point %s lies after point %s; name the earlier one first", points[0].text, points[1].text)
		}
	}
	d := differenceJSON{s.session, from, to, to.count - from.count, session.Compare(s.until(from.count), s.until(to.count))}
	if a.flags.JSON {
		return cli.JSON(a.env.Stdout, d)
	}
	a.printDifference(d)
	return nil
}

func (a *app) printDifference(d differenceJSON) {
	style, out := a.env.OutStyle(), a.env.Stdout
	fmt.Fprintf(out, "%s  from %s to %s: %s\n", style.Bold(string(d.Session)), d.From, d.To, counted(d.Records, "record"))
	if d.Empty() {
		fmt.Fprintln(out, "nothing changed")
		return
	}
	row := func(kind, format string, args ...any) {
		fmt.Fprintf(out, "%s%s\n", style.Dim(fmt.Sprintf("%-13s", kind)), fmt.Sprintf(format, args...))
	}
	for _, f := range d.Fields {
		row(f.Field, "%s", change(style, f.Before, f.After))
	}
	for _, m := range d.Messages {
		row("message", "%s %s", style.Bold(line(string(m.Role))), line(m.Text))
	}
	for _, i := range d.Inferences {
		row("inference", "%s %s %s%s%s", line(string(i.ID)), style.Dim(line(string(i.Model))),
			change(style, string(i.Before), string(i.After)), because(i.Says), because(i.Reason))
	}
	for _, c := range d.Calls {
		row("call", "%s %s %s %s%s%s", line(string(c.ID)), style.Bold(line(c.Tool)), c.Tier,
			change(style, string(c.Before), string(c.After)), because(c.Output), because(c.Reason))
		if c.Recovered {
			row("", "%s its worker told what became of files after a late rollback", line(string(c.ID)))
		}
	}
	for _, p := range d.Approvals {
		row("approval", "%s", approvalText(style, p))
	}
	for _, r := range d.Rules {
		row("rule", "%s", describeSession(r, style))
	}
	for _, al := range d.Alarms {
		row("alarm", "%d %s%s", al.Seq, style.Red(line(al.Subject)), because(al.Reason))
	}
}

// change is a value before and after; none is a dash.
func change(s cli.Style, before, after string) string {
	if before == "" {
		before = "–"
	}
	if after == "" {
		after = "–"
	}
	return s.Dim(line(before)+" →") + " " + line(after)
}

// approvalText says what was asked, and what was answered, of one invocation.
func approvalText(s cli.Style, p session.ApprovalChange) string {
	text := fmt.Sprintf("%s %s %s", line(string(p.ID)), s.Bold(line(p.Tool)), p.Tier)
	if p.Asked {
		text += " " + s.Yellow("asked") + " until " + stamp(*p.Deadline)
	}
	switch {
	case p.Answer == "":
		text += ", waits"
	case p.By == "":
		text += " " + line(p.Answer) + because(p.Reason)
	default:
		text += " " + line(p.Answer) + " by " + line(p.By) + because(p.Reason)
	}
	return text + s.Dim(" digest "+line(p.Digest))
}
