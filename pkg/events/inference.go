package events

// GenerationConfig is every sampling field that is sent to a model. Zero means
// the default in the comment; the client always sends explicit values.
type GenerationConfig struct {
	Temperature   float64  `json:"temperature"` // 0
	TopP          float64  `json:"top_p"`       // 0 is sent as 1
	TopK          int      `json:"top_k,omitempty"`
	MinP          float64  `json:"min_p,omitempty"`
	RepeatPenalty float64  `json:"repeat_penalty,omitempty"` // 0 is sent as 1
	MaxTokens     int      `json:"max_tokens"`               // 0 is sent as 512
	Stop          []string `json:"stop,omitempty"`
	Seed          int64    `json:"seed"`
	// Exact asks for the same text for the same prompt and seed each time: alone
	// on its llama-server, and with nothing kept from prompts before it.
	Exact bool `json:"exact,omitempty"`
}

// TokenUsage counts tokens.
type TokenUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Cached     int `json:"cached_tokens,omitempty"` // of Prompt, not computed again
}

// A FinishReason says why a model stopped.
type FinishReason string

const (
	FinishStop      FinishReason = "stop"
	FinishLength    FinishReason = "length"
	FinishToolCalls FinishReason = "tool_calls"
)

// A ModelCapability is what a model is good at.
type ModelCapability string

const (
	Coding    ModelCapability = "CODING"
	Reasoning ModelCapability = "REASONING"
	General   ModelCapability = "GENERAL"
)

// A CapabilityScore rates a model from 0 to 1.
type CapabilityScore struct {
	Capability ModelCapability `json:"capability"`
	Score      float64         `json:"score"`
}

// A ModelOffer is a model as a worker announces it.
type ModelOffer struct {
	Name          ModelID           `json:"name"`
	Token         string            `json:"token"`
	ContextSize   int               `json:"context_size"` // tokens
	Capabilities  []CapabilityScore `json:"capabilities,omitempty"`
	ResidencyMode ResidencyMode     `json:"residency_mode"`
	Small         bool              `json:"small,omitempty"` // needs guidance to act: see [InferenceRequested].Guided
	Slots         int               `json:"slots,omitempty"` // inferences at one time; 0: 1
}

// A ResidencyMode says when a loaded model is unloaded.
type ResidencyMode string

const (
	Persistent ResidencyMode = "PERSISTENT" // never
	Dynamic    ResidencyMode = "DYNAMIC"    // after an idle time-out
	Ephemeral  ResidencyMode = "EPHEMERAL"  // after each inference
)

// A ChatRole is who speaks in a prompt.
type ChatRole string

const (
	RoleSystem    ChatRole = "system"
	RoleUser      ChatRole = "user"
	RoleAssistant ChatRole = "assistant"
)

// A ChatMessage is one turn of a prompt.
type ChatMessage struct {
	Role    ChatRole `json:"role"`
	Content string   `json:"content"`
}

// A ToolCall is a tool as a model asks for it.
type ToolCall struct {
	Tool      string `json:"tool"`
	Arguments Raw    `json:"arguments"`
}

// A Reply is what a model said, taken apart: tool calls, or a final answer.
type Reply struct {
	Calls []ToolCall `json:"calls,omitempty"`
	Final *string    `json:"final,omitempty"`
	Text  string     `json:"text"` // as generated
	// Reasoning is what the model thought before, as far as it is kept. No later
	// prompt holds it.
	Reasoning string `json:"reasoning,omitempty"`
}
