package events

import "time"

// A ToolRef names a tool as one worker's offer described it.
type ToolRef struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // of the [ToolOffer]
}

// InferenceRequested asks a model to go on. It says how far to read, never the
// context itself: the model-worker packs that from the log, so that anybody can
// pack it again. Only an inference of no session carries its Messages.
type InferenceRequested struct {
	Ref
	Decision
	Stage      StageID          `json:"stage"`
	Model      ModelID          `json:"model"`
	ModelToken string           `json:"model_token"`
	Routing    *Routing         `json:"routing,omitempty"`    // why this model; nil: an older kernel asked
	Through    uint64           `json:"through"`              // last sequence of EVENTS to read
	Tools      []ToolRef        `json:"tools,omitempty"`      // on offer in this turn
	Withdrawn  []string         `json:"withdrawn,omitempty"`  // tools shut for this turn, for repeating
	Guided     bool             `json:"guided,omitempty"`     // shown what to do, and held to what was spoken of: for small models
	FinalOnly  bool             `json:"final_only,omitempty"` // the last turn: only an answer is left
	Generation GenerationConfig `json:"generation"`
	Retry      InferenceID      `json:"retry,omitempty"` // the failed inference that this one repeats
	Messages   []ChatMessage    `json:"messages,omitempty"`
	Deadline   time.Time        `json:"deadline"` // without a start by then the kernel fails it
}

// Route returns the model's token.
func (f InferenceRequested) Route() string { return f.ModelToken }

// InferenceStarted is a model-worker's claim. Its sequence is the fencing token.
type InferenceStarted struct {
	Ref
	Claim
}

// A Claim says who took something on. The sequence of the fact that holds it is
// the fencing token of what follows.
type Claim struct {
	Worker  WorkerID `json:"worker"`
	Boot    string   `json:"boot"`    // of the worker's process
	Nonce   string   `json:"nonce"`   // of this claim
	Attempt int      `json:"attempt"` // from 1
}

// A Fence ties an end to the claim it ends.
type Fence struct {
	Started uint64 `json:"started,omitempty"` // sequence of the latest started; 0: none
	Nonce   string `json:"nonce,omitempty"`   // of that claim; empty: written by somebody else than the owner
}

// InferenceCompleted is what a model said.
type InferenceCompleted struct {
	Ref
	Fence
	Reply        Reply              `json:"reply"`
	Finish       FinishReason       `json:"finish_reason"`
	Usage        TokenUsage         `json:"usage"`
	Latency      time.Duration      `json:"latency_ns"` // wall clock of the HTTP call
	Timings      map[string]float64 `json:"timings,omitempty"`
	PromptDigest string             `json:"prompt_sha256"`             // of the packed messages, see session.Pack
	Pack         int                `json:"pack,omitempty"`            // how the prompt was laid out, see session.PackVersion
	Cut          int                `json:"cut,omitempty"`             // L2 entries left out, oldest first
	Shortened    int                `json:"shortened_bytes,omitempty"` // of the tool results that stayed, oldest first
	Merged       bool               `json:"system_in_user,omitempty"`  // the template has no turns of the system: the user's first begins with it
	Tokenizer    string             `json:"tokenizer"`                 // "server"; "estimate": len/4; "bytes": it fits even if each byte is a token
}

// An InferenceFailure says why an inference failed, for programs.
type InferenceFailure string

const (
	FailOverflow    InferenceFailure = "overflow"     // system and task alone are over the window
	FailModelOutput InferenceFailure = "model_output" // nothing that parses and validates
	FailServer      InferenceFailure = "server"       // llama-server refused, crashed or did not load
	FailCancelled   InferenceFailure = "cancelled"    // the session ended
	FailWorkerLost  InferenceFailure = "worker_lost"  // too many attempts
	FailNobody      InferenceFailure = "nobody"       // no worker took it in time
)

// InferenceFailed says that a model gave nothing usable.
type InferenceFailed struct {
	Ref
	Decision
	Fence
	Code        InferenceFailure `json:"code"`
	Reason      string           `json:"reason"`
	Recoverable bool             `json:"recoverable"` // another seed, or another try, may do
	Text        string           `json:"text,omitempty"`
	Finish      FinishReason     `json:"finish_reason,omitempty"` // of an answer that is of no use: FinishLength if it was cut off
	Usage       TokenUsage       `json:"usage"`
	// Of an overflow: what the prompt has, or what of it may not be cut, and what
	// the model has room for, in tokens.
	PromptTokens int `json:"prompt_tokens,omitempty"`
	Window       int `json:"window_tokens,omitempty"`
}

func (InferenceRequested) FactName() FactName { return "inference.requested" }
func (InferenceStarted) FactName() FactName   { return "inference.started" }
func (InferenceCompleted) FactName() FactName { return "inference.completed" }
func (InferenceFailed) FactName() FactName    { return "inference.failed" }
