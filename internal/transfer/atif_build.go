package transfer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"correx/internal/session"
	"correx/pkg/events"
)

// TrajectoryOf tells a session as a trajectory, from all its records in order.
// Records that do not hold are not told; extra says how many they are.
func TrajectoryOf(id events.SessionID, records []events.Record, version string) Trajectory {
	b := &trajectory{
		state: session.State{ID: id}, stored: make(map[uint64]time.Time, len(records)),
		called: map[events.ToolInvocationID]bool{},
	}
	for _, r := range records {
		b.state = session.Evolve(b.state, r)
		b.stored[r.Seq] = r.Time.UTC()
		if r.Err == nil {
			b.outcome(r)
		}
	}
	b.opening()
	for _, i := range b.state.Inferences {
		b.inference(i)
	}
	for _, i := range b.state.Tools {
		if !b.called[i.ID] {
			b.request(i)
		}
	}
	return b.finish(id, version)
}

// A trajectory collects steps, each under the sequence of the record that it is.
type trajectory struct {
	state  session.State
	stored map[uint64]time.Time // by sequence
	steps  []placed
	called map[events.ToolInvocationID]bool // told with the inference that asked
	total  FinalMetrics
	model  string // the latest
}

type placed struct {
	seq uint64
	Step
}

func (b *trajectory) add(seq uint64, s Step) {
	s.Timestamp = b.stored[seq]
	if s.Extra == nil {
		s.Extra = map[string]any{}
	}
	s.Extra["seq"] = seq
	b.steps = append(b.steps, placed{seq, s})
}

// opening is the task and what people and the system said.
func (b *trajectory) opening() {
	if s := b.state.Started; s != nil {
		if s.System != "" {
			b.add(b.state.StartedSeq, Step{Source: bySystem, Message: s.System})
		}
		b.add(b.state.StartedSeq, Step{Source: byUser, Message: s.Task})
	}
	for _, m := range b.state.Messages {
		source := byUser
		if m.Role == events.RoleSystem {
			source = bySystem
		}
		b.add(m.Seq, Step{Source: source, Message: m.Text})
	}
}

// outcome is an end that no inference tells.
func (b *trajectory) outcome(r events.Record) {
	switch f := r.Fact.(type) {
	case events.SessionFailed:
		b.add(r.Seq, Step{Source: bySystem, Message: "the session failed: " + f.Reason})
	case events.SessionCancelled:
		b.add(r.Seq, Step{Source: bySystem, Message: "the session was cancelled: " + f.Reason})
	}
}

func (b *trajectory) inference(i session.Inference) {
	if i.Requested == nil {
		return
	}
	b.model = string(i.Requested.Model)
	if f := i.Failure; f != nil {
		b.total.add(f.Usage)
		b.add(i.EndSeq, Step{Source: bySystem, Message: fmt.Sprintf("inference %s failed: %s: %s", i.ID, f.Code, f.Reason)})
	}
	d := i.Done
	if d == nil {
		return
	}
	b.total.add(d.Usage)
	one := 1
	s := Step{
		Source: byAgent, ModelName: b.model, Message: d.Reply.Text, Reasoning: d.Reply.Reasoning, LLMCalls: &one,
		Metrics: &Metrics{Prompt: d.Usage.Prompt, Completion: d.Usage.Completion, Cached: d.Usage.Cached,
			Extra: map[string]any{"latency_ms": d.Latency.Milliseconds(), "finish_reason": d.Finish}},
		Extra: map[string]any{"inference": i.ID, "prompt_sha256": d.PromptDigest},
	}
	if d.Reply.Final != nil {
		s.Message = *d.Reply.Final
	}
	for n, c := range d.Reply.Calls {
		b.call(&s, events.ToolInvocationID(fmt.Sprintf("%s-%d", i.ID, n)), c)
	}
	b.add(i.EndSeq, s)
}

// call adds a call of the model to its step, and what came of it.
func (b *trajectory) call(s *Step, id events.ToolInvocationID, c events.ToolCall) {
	s.ToolCalls = append(s.ToolCalls, ToolCall{ID: string(id), Function: c.Tool, Arguments: object(c.Arguments)})
	i, ok := b.state.Tool(id)
	if !ok {
		return // it was never opened
	}
	b.called[id] = true
	if i.End == nil {
		return
	}
	if s.Observation == nil {
		s.Observation = &Observation{}
	}
	s.Observation.Results = append(s.Observation.Results, ObservationResult{Call: string(id), Content: result(i)})
}

// request is a call that no model asked for: a person's, or a second look.
func (b *trajectory) request(i session.Invocation) {
	if i.Requested == nil {
		return
	}
	q := i.Requested
	who := string(q.Actor)
	if who == "" {
		who = "the kernel"
	}
	s := Step{Source: bySystem, Extra: map[string]any{"invocation": i.ID},
		Message: fmt.Sprintf("%s asked for %s %s", who, q.Request.Tool, q.Request.Parameters)}
	if i.End != nil {
		s.Observation = &Observation{Results: []ObservationResult{{Content: result(i)}}}
	}
	b.add(i.RequestedSeq, s)
}

// result is what a call gave, or why it gave nothing.
func result(i session.Invocation) string {
	switch f := i.End.(type) {
	case events.ToolExecutionCompleted:
		return f.Receipt.Output
	case events.ToolExecutionFailed:
		if f.Receipt != nil && f.Receipt.Output != "" {
			return "failed: " + f.Reason + "\n" + f.Receipt.Output
		}
		return "failed: " + f.Reason
	case events.ToolExecutionRejected:
		return "rejected: " + f.Reason
	}
	return ""
}

// object is arguments as ATIF wants them, which no tool's schema contradicts.
func object(raw events.Raw) json.RawMessage {
	text := bytes.TrimSpace([]byte(raw))
	if json.Valid(text) && bytes.HasPrefix(text, []byte("{")) {
		return text
	}
	wrapped, _ := json.Marshal(map[string]string{"text": string(raw)}) // a text always encodes
	return wrapped
}

func (b *trajectory) finish(id events.SessionID, version string) Trajectory {
	slices.SortStableFunc(b.steps, func(x, y placed) int { return cmp.Compare(x.seq, y.seq) })
	t := Trajectory{
		SchemaVersion: ATIFVersion, SessionID: string(id), Steps: []Step{},
		Agent: Agent{Name: "correx", Version: version, ModelName: b.model},
		Extra: map[string]any{"status": b.state.Status, "through": b.state.Seq},
	}
	if n := len(b.state.Alarms); n > 0 {
		t.Extra["records_not_told"] = n
	}
	if s := b.state.Started; s != nil && s.ForkOf != nil {
		t.Extra["fork_of"] = s.ForkOf // whose steps are told by its own trajectory
	}
	for n, s := range b.steps {
		s.ID = n + 1
		t.Steps = append(t.Steps, s.Step)
	}
	b.total.Steps = len(t.Steps)
	t.FinalMetrics = &b.total
	return t
}
