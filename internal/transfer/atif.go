package transfer

import (
	"encoding/json"
	"time"

	"correx/pkg/events"
)

// ATIFVersion is the version of the Agent Trajectory Interchange Format that a
// [Trajectory] is in.
const ATIFVersion = "ATIF-v1.7"

// A Trajectory is a session in ATIF. Step ids count from 1 without a gap; only
// steps of the agent have a model, reasoning, calls and metrics; every result of
// such a step names a call of that step.
type Trajectory struct {
	SchemaVersion string         `json:"schema_version"`
	SessionID     string         `json:"session_id"`
	Agent         Agent          `json:"agent"`
	Steps         []Step         `json:"steps"`
	FinalMetrics  *FinalMetrics  `json:"final_metrics,omitempty"`
	Extra         map[string]any `json:"extra,omitempty"`
}

// An Agent says who acted.
type Agent struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	ModelName string `json:"model_name,omitempty"`
}

// Who a step is by.
const (
	bySystem = "system"
	byUser   = "user"
	byAgent  = "agent"
)

// A Step is one message, of an agent with the calls in it and their results.
type Step struct {
	ID          int            `json:"step_id"`
	Timestamp   time.Time      `json:"timestamp"` // when the record was stored
	Source      string         `json:"source"`    // system, user or agent
	Message     string         `json:"message"`
	ModelName   string         `json:"model_name,omitempty"`
	Reasoning   string         `json:"reasoning_content,omitempty"`
	ToolCalls   []ToolCall     `json:"tool_calls,omitempty"`
	Observation *Observation   `json:"observation,omitempty"`
	Metrics     *Metrics       `json:"metrics,omitempty"`
	LLMCalls    *int           `json:"llm_call_count,omitempty"`
	Extra       map[string]any `json:"extra,omitempty"`
}

// A ToolCall is a call as the agent asked for it.
type ToolCall struct {
	ID        string          `json:"tool_call_id"`
	Function  string          `json:"function_name"`
	Arguments json.RawMessage `json:"arguments"` // an object
}

// An Observation is what came of the calls of a step.
type Observation struct {
	Results []ObservationResult `json:"results"`
}

// An ObservationResult is what came of one call.
type ObservationResult struct {
	Call    string `json:"source_call_id,omitempty"`
	Content string `json:"content"`
}

// Metrics are of one step, in tokens; cached ones are part of the prompt's.
type Metrics struct {
	Prompt     int            `json:"prompt_tokens"`
	Completion int            `json:"completion_tokens"`
	Cached     int            `json:"cached_tokens"`
	Extra      map[string]any `json:"extra,omitempty"`
}

// FinalMetrics are of all steps, and of inferences that failed.
type FinalMetrics struct {
	Prompt     int `json:"total_prompt_tokens"`
	Completion int `json:"total_completion_tokens"`
	Cached     int `json:"total_cached_tokens"`
	Steps      int `json:"total_steps"`
}

func (m *FinalMetrics) add(u events.TokenUsage) {
	m.Prompt, m.Completion, m.Cached = m.Prompt+u.Prompt, m.Completion+u.Completion, m.Cached+u.Cached
}
