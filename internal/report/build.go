package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"correx/internal/session"
	"correx/pkg/audit"
	"correx/pkg/events"
)

// Options say what a report is made with.
type Options struct {
	Stream   audit.Identity
	Session  events.SessionID
	Verify   func(events.Record) error // holds an approval against the kernel's signature
	Evidence Evidence
}

// Build tells the records of one session, which come in the order of the log.
func Build(records []events.Record, o Options) Report {
	b := &builder{o: o, r: Report{
		Format: Format, Stream: o.Stream.Stream, Created: o.Stream.Created.UTC(), Session: o.Session,
		Steps: []Step{}, Alarms: []Alarm{}, Evidence: o.Evidence,
	}, state: session.State{ID: o.Session}, calls: map[events.Aggregate]*call{}, inferences: map[events.Aggregate]*inference{}}
	if b.r.Evidence.Findings == nil {
		b.r.Evidence.Findings = []string{}
	}
	for _, r := range records {
		b.take(r)
	}
	b.finish()
	return b.r
}

// A builder folds the records of a session as the kernel does.
type builder struct {
	o          Options
	r          Report
	state      session.State
	hasher     audit.Hasher
	calls      map[events.Aggregate]*call
	inferences map[events.Aggregate]*inference
	affected   []string
}

type call struct {
	fold session.Invocation
	out  *Call
}

type inference struct {
	fold session.Inference
	out  *Inference
}

func (b *builder) take(r events.Record) {
	b.r.Through = max(b.r.Through, r.Seq)
	if b.o.Session != events.System {
		b.state = session.Evolve(b.state, r)
	}
	var fault error
	switch r.Aggregate.Kind {
	case events.KindTool:
		fault = b.tool(r)
	case events.KindInference:
		fault = b.inference(r)
	case events.KindSession:
		before := len(b.state.Alarms)
		if fault = r.Err; fault == nil && before > 0 && b.state.Alarms[before-1].Seq == r.Seq {
			fault = fmt.Errorf("%s", b.state.Alarms[before-1].Reason)
		}
		if fault == nil {
			b.event(r)
		}
	default:
		fault = r.Err
	}
	if fault != nil {
		b.r.Alarms = append(b.r.Alarms, Alarm{where(r), r.Subject, fault.Error()})
	}
}

func where(r events.Record) Where { return Where{r.Seq, r.Time.UTC()} }

// event tells what was said and what became of the session.
func (b *builder) event(r events.Record) {
	e := Event{}
	if d, ok := r.Fact.(interface{ Decided() events.Decision }); ok {
		e.Actor = string(d.Decided().Actor)
	}
	switch f := r.Fact.(type) {
	case events.SessionStarted:
		b.r.Start = &Start{Where: where(r), Actor: string(f.Actor), Command: string(f.Command), Task: f.Task, System: f.System,
			Model: string(f.Model), Mode: string(f.Mode), Tools: f.Tools, Limits: f.Limits,
			ForkOf: f.ForkOf, Say: f.Say}
		return
	case events.StageEntered:
		return // its inference says it
	case events.MessageAdded:
		e.What, e.Text = "message from "+string(f.Role), f.Text
	case events.ApprovalRuleGranted:
		e.What, e.Text = "rule granted", fmt.Sprintf("%s up to %s without a question until %s", f.Tool, f.MaxTier, f.Until.UTC().Format(clock))
	case events.SessionPaused:
		e.What, e.Text = "paused", f.Reason
	case events.SessionResumed:
		e.What, e.Text = "resumed", f.Reason
	case events.SessionCompleted:
		e.What = "completed"
	case events.SessionFailed:
		e.What, e.Text = "failed", string(f.Code)+": "+f.Reason
		b.r.Reason = e.Text
	case events.SessionCancelled:
		e.What, e.Text = "cancelled", f.Reason
		b.r.Reason = e.Text
	default:
		e.What = string(r.Fact.FactName())
	}
	b.r.Steps = append(b.r.Steps, Step{Where: where(r), Event: &e})
}

func (b *builder) inference(r events.Record) error {
	i := b.inferences[r.Aggregate]
	if i == nil {
		i = &inference{out: &Inference{ID: r.Aggregate.ID}}
	}
	next, err := i.fold.Step(r)
	if err != nil {
		return err
	}
	if b.inferences[r.Aggregate] == nil {
		b.inferences[r.Aggregate] = i
		b.r.Steps = append(b.r.Steps, Step{Where: where(r), Inference: i.out})
	}
	i.fold = next
	out := i.out
	out.Status = string(next.Status())
	if q := next.Requested; q != nil {
		out.Model = string(q.Model)
	}
	if s := next.Started; s != nil {
		out.Worker = string(s.Worker)
	}
	if d := next.Done; d != nil {
		out.Tokens, out.Prompt, out.Said, out.Calls = d.Usage.Total, d.PromptDigest, d.Reply.Text, nil
		if d.Reply.Final != nil {
			out.Said = *d.Reply.Final
		}
		for _, c := range d.Reply.Calls {
			out.Calls = append(out.Calls, c.Tool+" "+string(c.Arguments))
		}
	}
	if f := next.Failure; f != nil {
		out.Tokens, out.Reason = f.Usage.Total, string(f.Code)+": "+f.Reason
	}
	return nil
}

// finish counts.
func (b *builder) finish() {
	if b.o.Session != events.System {
		b.r.State = string(b.state.Status)
		if text, ok := b.state.Answer(); ok {
			b.r.Answer = &text
		}
	}
	s := &b.r.Summary
	for _, step := range b.r.Steps {
		switch {
		case step.Inference != nil:
			s.Inferences++
			s.Tokens += step.Inference.Tokens
		case step.Call != nil:
			s.count(step.Call)
		}
	}
	slices.Sort(b.affected)
	s.Affected = slices.Compact(b.affected)
}

func (s *Summary) count(c *Call) {
	s.Calls++
	if c.Answer != nil && c.Answer.What == "approved" {
		if c.Answer.By == "person" {
			s.ByPeople++
		} else {
			s.ByPolicy++
		}
	}
	switch session.ToolInvocationStatus(c.Status) {
	case session.Completed:
		s.Succeeded++
	case session.Failed:
		s.Failed++
	case session.Rejected:
		s.Refused++
	default:
		s.Open++
	}
}

// askedBy says who wished a call.
func askedBy(f events.ToolInvocationRequested) string {
	switch {
	case f.Follows != "":
		return "the run of " + string(f.Follows)
	case f.Command != "":
		return string(f.Actor) + ", by command " + string(f.Command)
	}
	turn, _, ok := strings.Cut(f.ID, "-")
	if !ok {
		return "the kernel"
	}
	return "the model, in " + turn
}

// parameters is a body's JSON, or its text as a string when it is none.
func parameters(raw events.Raw) json.RawMessage {
	if json.Valid(raw) {
		return json.RawMessage(raw)
	}
	text, err := json.Marshal(string(raw))
	if err != nil {
		return json.RawMessage("null") // a string always marshals
	}
	return text
}
