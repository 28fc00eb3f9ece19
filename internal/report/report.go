package report

import (
	"encoding/json"
	"time"

	"correx/pkg/events"
)

// Format is what a report says it is.
const Format = "correx report 1"

// A Report is one session. Times are the stream's own.
type Report struct {
	Format   string           `json:"format"`
	Stream   string           `json:"stream"`
	Created  time.Time        `json:"stream_created"`
	Session  events.SessionID `json:"session"`
	Through  uint64           `json:"through"` // the last record of the session that was read
	State    string           `json:"state,omitempty"`
	Start    *Start           `json:"start,omitempty"`
	Answer   *string          `json:"answer,omitempty"`
	Reason   string           `json:"reason,omitempty"` // why it ended so
	Summary  Summary          `json:"summary"`
	Steps    []Step           `json:"steps"`
	Alarms   []Alarm          `json:"alarms"` // records that do not hold
	Evidence Evidence         `json:"evidence"`
}

// A Start is what a session began with.
type Start struct {
	Where
	Actor   string        `json:"actor"`
	Command string        `json:"command"`
	Task    string        `json:"task"`
	System  string        `json:"system,omitempty"`
	Model   string        `json:"model,omitempty"`
	Mode    string        `json:"mode"`
	Tools   []string      `json:"tools,omitempty"`
	Limits  events.Limits `json:"limits"`
	ForkOf  *events.Fork  `json:"fork_of,omitempty"` // whose past the model was told, too
	Say     string        `json:"say,omitempty"`     // of a fork: what the user said next
}

// Where is a record's place on the log.
type Where struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
}

// A Summary counts.
type Summary struct {
	Calls      int      `json:"calls"`     // wishes to run a tool
	ByPeople   int      `json:"by_people"` // approved by a person
	ByPolicy   int      `json:"by_policy"` // approved by policy or a rule
	Refused    int      `json:"refused"`   // never ran
	Succeeded  int      `json:"succeeded"`
	Failed     int      `json:"failed"`
	Open       int      `json:"open"` // have not ended
	Inferences int      `json:"inferences"`
	Tokens     int      `json:"tokens"`
	Affected   []string `json:"affected,omitempty"` // what was changed, by runs that succeeded
}

// A Step is one thing that happened; exactly one of its parts is there.
type Step struct {
	Where
	Event     *Event     `json:"event,omitempty"`
	Inference *Inference `json:"inference,omitempty"`
	Call      *Call      `json:"call,omitempty"`
}

// An Event is what was said, or became of the session.
type Event struct {
	What  string `json:"what"`
	Actor string `json:"actor,omitempty"`
	Text  string `json:"text,omitempty"`
}

// An Inference is a model's turn.
type Inference struct {
	ID     string   `json:"id"`
	Model  string   `json:"model"`
	Status string   `json:"status"`
	Worker string   `json:"worker,omitempty"`
	Said   string   `json:"said,omitempty"` // the answer, or its text
	Calls  []string `json:"calls,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Tokens int      `json:"tokens"`
	Prompt string   `json:"prompt_sha256,omitempty"`
}

// A Call is a wish to run a tool, and all that came of it.
type Call struct {
	ID         string                 `json:"invocation"`
	Tool       string                 `json:"tool"`
	Tier       string                 `json:"tier"`
	Status     string                 `json:"status"`
	AskedBy    string                 `json:"asked_by"`
	Follows    string                 `json:"follows,omitempty"`
	Parameters json.RawMessage        `json:"parameters"`
	Preview    *Preview               `json:"preview,omitempty"`
	Question   *Question              `json:"question,omitempty"`
	Answer     *Answer                `json:"answer,omitempty"`
	Run        *Run                   `json:"run,omitempty"`
	Result     *Result                `json:"result,omitempty"`
	Recovered  []events.RecoveredFile `json:"recovered,omitempty"`
	Records    []Record               `json:"records"`
}

// A Preview is what a worker found before anybody was asked.
type Preview struct {
	Where
	Worker   string            `json:"worker"`
	Valid    bool              `json:"valid"`
	Reason   string            `json:"reason,omitempty"`
	Diff     string            `json:"diff,omitempty"`
	Base     []events.BaseHash `json:"base,omitempty"`
	Affected []string          `json:"affected,omitempty"`
	Notes    []string          `json:"notes,omitempty"`
}

// A Question is what a person was asked.
type Question struct {
	Where
	Why      string    `json:"why"`
	Notes    []string  `json:"notes,omitempty"`
	Digest   string    `json:"digest"`
	Deadline time.Time `json:"deadline"`
}

// An Answer is what was decided, by whom, and for what exactly.
type Answer struct {
	Where
	What      string        `json:"what"`         // approved, denied, expired
	By        string        `json:"by,omitempty"` // person, policy, rule
	Actor     string        `json:"actor,omitempty"`
	Command   string        `json:"command,omitempty"`
	Waited    time.Duration `json:"waited_ns,omitempty"` // since the question
	Scope     string        `json:"scope,omitempty"`
	Reason    string        `json:"reason,omitempty"`
	Policy    string        `json:"policy_version,omitempty"`
	Until     *time.Time    `json:"until,omitempty"`
	Digest    string        `json:"digest,omitempty"`
	Matches   bool          `json:"digest_matches"` // what is shown here has that digest
	Key       string        `json:"key,omitempty"`
	Signature string        `json:"signature,omitempty"` // verified, or why not
	Verified  bool          `json:"signature_verified"`
}

// A Run is where it ran.
type Run struct {
	Where
	Worker    string `json:"worker"`
	Attempt   int    `json:"attempt"`
	Isolation string `json:"isolation"`
}

// A Result is how a call ended.
type Result struct {
	Where
	Status    string               `json:"status"`
	Reason    string               `json:"reason,omitempty"`
	Effects   string               `json:"effects,omitempty"`
	ExitCode  *int                 `json:"exit_code,omitempty"`
	Duration  time.Duration        `json:"duration_ns,omitempty"`
	Isolation string               `json:"isolation,omitempty"`
	Affected  []string             `json:"affected,omitempty"`
	Diff      string               `json:"diff,omitempty"`
	Output    string               `json:"output,omitempty"`
	Artifacts []events.ArtifactRef `json:"artifacts,omitempty"`
}

// A Record names a record of the log and its hash, for proofs.
type Record struct {
	Where
	Fact string `json:"fact"`
	Hash string `json:"event_sha256"`
}

// An Alarm is a record that does not hold.
type Alarm struct {
	Where
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
}

// Evidence says how far the log was held against signed checkpoints.
type Evidence struct {
	Checked  bool     `json:"checked"` // it was
	Keys     []string `json:"keys,omitempty"`
	Covered  uint64   `json:"covered"`  // all up to here is as it was signed
	Findings []string `json:"findings"` // what is wrong
}
