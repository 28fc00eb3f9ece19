package session

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"correx/pkg/events"
)

// A Status is where a session stands.
type Status string

const (
	Running          Status = "RUNNING"
	Paused           Status = "PAUSED"
	SessionCompleted Status = "COMPLETED" // goes on with say or resume
	SessionFailed    Status = "FAILED"    // goes on with say or resume
	SessionCancelled Status = "CANCELLED" // for good
)

// A State is the fold of one session, or of one invocation or inference of no
// session. It is a value: [Evolve] never changes what an older State sees.
type State struct {
	ID         events.SessionID
	Seq        uint64 // last record folded
	Status     Status
	Started    *events.SessionStarted
	StartedSeq uint64
	MainSeq    uint64 // last record of session.main, whatever it is
	MainHeld   uint64

	Messages   []Message
	Rules      []events.ApprovalRuleGranted
	Inferences []Inference  // in the order of their requests
	Tools      []Invocation // likewise
	Outcome    events.Fact  // SessionCompleted, Failed or Cancelled; the latest
	Active     Activation

	Cited  []Citation // commands that facts carry out
	Alarms []Alarm    // records that do not hold
}

// An Activation is what has happened since a session was started or last taken
// up again; limits and repetition are counted within it.
type Activation struct {
	Since      uint64         // sequence of the fact that began it
	At         time.Time      // its time, or that of the latest resumption
	Clock      time.Time      // when the wall clock began, pauses left out: the first started; zero: not yet
	PausedAt   time.Time      // zero: not paused
	Stage      events.StageID // the latest turn; empty: none yet
	StageSeq   uint64
	Turns      int
	ToolCalls  int // of the model's
	Tokens     int
	Inferences int // how many of State.Inferences came before
	Tools      int // how many of State.Tools came before
}

// A Message is what people and the system said.
type Message struct {
	Seq  uint64          `json:"seq"`
	Role events.ChatRole `json:"role"`
	Text string          `json:"text"`
}

// A Citation says which fact carries a command out.
type Citation struct {
	Command events.CommandID
	Seq     uint64
	Fact    events.FactName
	ID      string // of its aggregate
}

// An Alarm is a record that does not hold.
type Alarm struct {
	Seq     uint64 `json:"seq"`
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
}

// maxAlarms bounds what a flood of strangers' records can make a State keep.
const maxAlarms = 100

// Cites returns the fact that carries out a command, if one does.
func (s State) Cites(c events.CommandID) (Citation, bool) {
	for _, k := range s.Cited {
		if k.Command == c {
			return k, true
		}
	}
	return Citation{}, false
}

// Tool returns an invocation by its id.
func (s State) Tool(id events.ToolInvocationID) (Invocation, bool) {
	if k := s.tool(string(id)); k >= 0 {
		return s.Tools[k], true
	}
	return Invocation{}, false
}

// Inference returns an inference by its id.
func (s State) Inference(id events.InferenceID) (Inference, bool) {
	if k := s.inference(string(id)); k >= 0 {
		return s.Inferences[k], true
	}
	return Inference{}, false
}

// Rests reports whether all that was opened has ended, follow-ups too.
func (s State) Rests() bool {
	for _, i := range s.Tools {
		if !i.Status().Ended() || s.FollowUpDue(i) {
			return false
		}
	}
	for _, i := range s.Inferences {
		if !i.Status().Ended() {
			return false
		}
	}
	return true
}

// Answer returns the model's final answer of a completed session.
func (s State) Answer() (string, bool) {
	c, ok := s.Outcome.(events.SessionCompleted)
	if !ok {
		return "", false
	}
	i, ok := s.Inference(c.Inference)
	if !ok || i.Done == nil || i.Done.Reply.Final == nil {
		return "", false
	}
	return *i.Done.Reply.Final, true
}

// Evolve folds one record of s's own session. Every log can be folded: a record
// that does not hold changes nothing but the sequences and Alarms.
func Evolve(s State, r events.Record) State {
	s.Seq = r.Seq
	if s.ID == "" {
		s.ID = r.Aggregate.Session
	}
	var err error
	switch r.Aggregate.Kind {
	case events.KindSession:
		s, err = s.session(r)
	case events.KindInference:
		s, err = s.stepInference(r)
	case events.KindTool:
		s, err = s.stepTool(r)
	default:
		err = r.Err
	}
	if err != nil {
		if len(s.Alarms) < maxAlarms {
			s.Alarms = append(slices.Clip(s.Alarms), Alarm{r.Seq, r.Subject, err.Error()})
		}
		return s
	}
	if d, ok := r.Fact.(interface{ Decided() events.Decision }); ok && d.Decided().Command != "" {
		s.Cited = append(slices.Clip(s.Cited), Citation{d.Decided().Command, r.Seq, r.Fact.FactName(), r.Aggregate.ID})
	}
	return s
}

// sessionMayFollow is the table of session.main.
var sessionMayFollow = map[Status]string{
	"":               "started",
	Running:          "message stage rule paused completed failed cancelled",
	Paused:           "message rule resumed failed cancelled",
	SessionCompleted: "message rule resumed cancelled",
	SessionFailed:    "message rule resumed cancelled",
	SessionCancelled: "",
}

func (s State) session(r events.Record) (State, error) {
	if r.Aggregate.ID != events.Main {
		return s, errors.New("a session has one aggregate, main")
	}
	s.MainSeq = r.Seq
	if r.Err != nil {
		return s, r.Err
	}
	if token := r.Fact.FactName().Token(); !contains(sessionMayFollow[s.Status], token) {
		return s, fmt.Errorf("%s may not follow %s", token, orNothing(string(s.Status)))
	}
	if f, ok := r.Fact.(events.SessionStarted); ok && f.ForkOf != nil && !forkHolds(*f.ForkOf, r) {
		return s, fmt.Errorf("forked at %d from %q, which is not before it", f.ForkOf.At, f.ForkOf.Session)
	}
	s.MainHeld = r.Seq
	switch f := r.Fact.(type) {
	case events.SessionStarted:
		s.Started, s.StartedSeq = &f, r.Seq
		if f.Say != "" {
			s.Messages = append(slices.Clip(s.Messages), Message{r.Seq, events.RoleUser, f.Say})
		}
		s = s.activate(r, f.Now)
	case events.MessageAdded:
		s.Messages = append(slices.Clip(s.Messages), Message{r.Seq, f.Role, f.Text})
		if s.Status == SessionCompleted || s.Status == SessionFailed {
			s = s.activate(r, f.Now)
		}
	case events.StageEntered:
		s.Active.Stage, s.Active.StageSeq = f.Stage, r.Seq
		s.Active.Turns++
	case events.ApprovalRuleGranted:
		s.Rules = append(slices.Clip(s.Rules), f)
	case events.SessionPaused:
		s.Status, s.Active.PausedAt = Paused, f.Now
	case events.SessionResumed:
		if s.Status == Paused {
			s.Status, s.Active = Running, s.Active.resume(f.Now)
			break
		}
		s = s.activate(r, f.Now)
	case events.SessionCompleted:
		s.Status, s.Outcome = SessionCompleted, f
	case events.SessionFailed:
		s.Status, s.Outcome = SessionFailed, f
	case events.SessionCancelled:
		s.Status, s.Outcome = SessionCancelled, f
	}
	return s, nil
}

func (s State) activate(r events.Record, now time.Time) State {
	s.Status, s.Outcome = Running, nil
	s.Active = Activation{Since: r.Seq, At: now, Inferences: len(s.Inferences), Tools: len(s.Tools)}
	return s
}

func (s State) stepTool(r events.Record) (State, error) {
	s.Tools = slices.Clone(s.Tools)
	k := s.tool(r.Aggregate.ID)
	if k < 0 {
		// Even a record that does not hold is the last one of its aggregate.
		s.Tools = append(s.Tools, Invocation{Session: r.Aggregate.Session, ID: events.ToolInvocationID(r.Aggregate.ID)})
		k = len(s.Tools) - 1
	}
	if err := past(s.Tools[k].Session, r); err != nil {
		return s, err
	}
	next, err := s.Tools[k].Step(r)
	s.Tools[k] = next
	if err != nil {
		return s, err
	}
	switch f := r.Fact.(type) {
	case events.ToolInvocationRequested:
		s.Tools, s.Active.Tools = toEnd(s.Tools, k, s.Active.Tools)
		if f.Actor == "" && f.Follows == "" {
			s.Active.ToolCalls++
		}
	case events.ToolExecutionStarted:
		s.Active = s.Active.clock(r.Time)
	}
	return s, nil
}

// toEnd puts what was just requested behind all that was before, though a
// stranger's record may have made it known earlier. Older is how many came before
// the activation. It changes all, which the caller has cloned.
func toEnd[T any](all []T, k, older int) ([]T, int) {
	if k < older {
		older--
	}
	x := all[k]
	return append(slices.Delete(all, k, k+1), x), older
}

func (s State) stepInference(r events.Record) (State, error) {
	s.Inferences = slices.Clone(s.Inferences)
	k := s.inference(r.Aggregate.ID)
	if k < 0 {
		s.Inferences = append(s.Inferences, Inference{Session: r.Aggregate.Session, ID: events.InferenceID(r.Aggregate.ID)})
		k = len(s.Inferences) - 1
	}
	if err := past(s.Inferences[k].Session, r); err != nil {
		return s, err
	}
	next, err := s.Inferences[k].Step(r)
	s.Inferences[k] = next
	if err != nil {
		return s, err
	}
	switch f := r.Fact.(type) {
	case events.InferenceRequested:
		s.Inferences, s.Active.Inferences = toEnd(s.Inferences, k, s.Active.Inferences)
	case events.InferenceStarted:
		s.Active = s.Active.clock(r.Time)
	case events.InferenceCompleted:
		s.Active.Tokens += f.Usage.Total
	case events.InferenceFailed:
		s.Active.Tokens += f.Usage.Total
	}
	return s, nil
}

// resume lets the clocks go on where they stood when the session was paused.
func (a Activation) resume(now time.Time) Activation {
	if d := now.Sub(a.PausedAt); !a.Clock.IsZero() && d > 0 {
		a.Clock = a.Clock.Add(d)
	}
	a.At, a.PausedAt = now, time.Time{}
	return a
}

func (a Activation) clock(t time.Time) Activation {
	if a.Clock.IsZero() {
		a.Clock = t
	}
	return a
}

func (s State) tool(id string) int {
	for k := len(s.Tools) - 1; k >= 0; k-- {
		if string(s.Tools[k].ID) == id {
			return k
		}
	}
	return -1
}

func (s State) inference(id string) int {
	for k := len(s.Inferences) - 1; k >= 0; k-- {
		if string(s.Inferences[k].ID) == id {
			return k
		}
	}
	return -1
}
