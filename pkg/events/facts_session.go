package events

import "time"

// Limits end a session that goes on too long. Zero means the default of
// [Settings].
type Limits struct {
	Turns     int           `json:"turns,omitempty"`
	ToolCalls int           `json:"tool_calls,omitempty"`
	Tokens    int           `json:"tokens,omitempty"` // prompt and completion of all inferences
	WallTime  time.Duration `json:"wall_time_ns,omitempty"`
}

// SessionStarted opens a session. What it leaves empty comes from the
// [Settings] that held when it was decided.
type SessionStarted struct {
	Ref
	Decision
	Task       string           `json:"task"`
	System     string           `json:"system,omitempty"`     // system prompt
	Model      ModelID          `json:"model,omitempty"`      // by name
	Capability ModelCapability  `json:"capability,omitempty"` // or by what it is good at
	Tools      []string         `json:"tools,omitempty"`      // names; empty: all that workers announce
	Mode       ApprovalMode     `json:"mode"`
	Limits     Limits           `json:"limits"`
	Generation GenerationConfig `json:"generation"`
	ForkOf     *Fork            `json:"fork_of,omitempty"` // whose past it shares
	Say        string           `json:"say,omitempty"`     // of a fork: what the user says next
}

// A Fork says whose past a session shares, and how much of it: what is said of
// the other one up to a sequence of EVENTS, that one too.
type Fork struct {
	Session SessionID `json:"session"`
	At      uint64    `json:"at"`
}

// MessageAdded is what people and the system say. What a model said is in
// [InferenceCompleted], what a tool answered in its end.
type MessageAdded struct {
	Ref
	Decision
	Role ChatRole `json:"role"` // user or system
	Text string   `json:"text"`
}

// StageEntered begins a turn.
type StageEntered struct {
	Ref
	Decision
	Stage StageID `json:"stage"`
}

// ApprovalRuleGranted remembers a person's answer for the rest of a session: a
// tool, called with exactly these parameters or (Digest empty) with any, runs
// without a question until Until.
type ApprovalRuleGranted struct {
	Ref
	Decision
	Tool       string    `json:"tool"`
	Parameters string    `json:"parameters_sha256,omitempty"`
	MaxTier    Tier      `json:"max_tier"`
	Until      time.Time `json:"until"`
}

// SessionPaused stops a session between its steps.
type SessionPaused struct {
	Ref
	Decision
	Reason string `json:"reason,omitempty"`
}

// SessionResumed lets a paused, completed or failed session go on.
type SessionResumed struct {
	Ref
	Decision
	Reason string `json:"reason,omitempty"`
}

// SessionCompleted says that the model gave its final answer. The answer itself
// stands in the [InferenceCompleted] that it names.
type SessionCompleted struct {
	Ref
	Decision
	Inference InferenceID `json:"inference"`
}

// A FailureCode says why a session failed, for programs.
type FailureCode string

const (
	FailLimit      FailureCode = "limit"      // turns, calls, tokens or wall time
	FailRepetition FailureCode = "repetition" // the same call with the same result
	FailInference  FailureCode = "inference"  // the model gave nothing usable
	FailWaiting    FailureCode = "waiting"    // no worker offered a model or tool in time
	FailConflict   FailureCode = "conflict"   // the log refuses the same decision for ever
)

// SessionFailed ends a session that cannot go on by itself. Reason is for a
// person to act on.
type SessionFailed struct {
	Ref
	Decision
	Code   FailureCode `json:"code"`
	Reason string      `json:"reason"`
}

// SessionCancelled ends a session for good.
type SessionCancelled struct {
	Ref
	Decision
	Reason string `json:"reason,omitempty"`
}

func (SessionStarted) FactName() FactName      { return "session.started" }
func (MessageAdded) FactName() FactName        { return "session.message" }
func (StageEntered) FactName() FactName        { return "session.stage" }
func (ApprovalRuleGranted) FactName() FactName { return "session.rule" }
func (SessionPaused) FactName() FactName       { return "session.paused" }
func (SessionResumed) FactName() FactName      { return "session.resumed" }
func (SessionCompleted) FactName() FactName    { return "session.completed" }
func (SessionFailed) FactName() FactName       { return "session.failed" }
func (SessionCancelled) FactName() FactName    { return "session.cancelled" }
