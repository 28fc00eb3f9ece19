package events

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"
)

// A Fact is something that happened. Facts are values in the past tense; each
// type embeds [Ref], which says whose aggregate it belongs to.
type Fact interface {
	FactName() FactName
	Of() Ref
}

// A Routed fact has one more token in its subject, by which the consumers of
// workers filter: the tool's or the model's.
type Routed interface {
	Fact
	Route() string
}

// A Ref names an aggregate within its kind. It stands in the body and must
// equal what the subject says.
type Ref struct {
	Session SessionID `json:"session"`
	ID      string    `json:"id"`
}

// Of returns r; it makes every struct that embeds a Ref half a [Fact].
func (r Ref) Of() Ref { return r }

// A Decision is what each fact of the kernel records of how it came about, so
// that it can be checked again. Facts that workers write as well leave it zero.
type Decision struct {
	DecidedAt uint64    `json:"decided_at,omitempty"` // last record of the session (or aggregate of system) that was folded
	WorldAt   uint64    `json:"world_at,omitempty"`   // last record of system that was folded
	Now       time.Time `json:"now,omitzero"`         // the clock that was used
	Command   CommandID `json:"command,omitempty"`    // the command that it carries out
	Actor     ActorID   `json:"actor,omitempty"`      // whose command that was
}

// Decided returns d; the kernel's facts all have it.
func (d Decision) Decided() Decision { return d }

// A Kind is a kind of aggregate: the third token of a fact's subject.
type Kind string

const (
	KindSession   Kind = "session"
	KindInference Kind = "inference"
	KindTool      Kind = "tool"
	KindModel     Kind = "model"
	KindWorker    Kind = "worker"
	KindCommand   Kind = "command"
	KindAudit     Kind = "audit"
)

// A FactName is "<kind>.<token>", as in "tool.approval_requested".
type FactName string

// Kind returns the part before the dot.
func (n FactName) Kind() Kind { k, _, _ := strings.Cut(string(n), "."); return Kind(k) }

// Token returns the part behind the dot: the fifth token of the subject.
func (n FactName) Token() string { _, t, _ := strings.Cut(string(n), "."); return t }

// A FactType is one entry of the table of facts.
type FactType struct {
	Name    FactName
	GoName  string // "ToolInvocationRequested"; part of ce-type
	Version int    // of the payload, from 1
	Routed  bool
	New     func() Fact // a zero value
	decode  func([]byte) (Fact, error)
}

// factTypes is filled once, below; it is never changed afterwards.
var factTypes = tableOf(
	fact[SessionStarted](), fact[MessageAdded](), fact[StageEntered](), fact[ApprovalRuleGranted](),
	fact[SessionPaused](), fact[SessionResumed](), fact[SessionCompleted](), fact[SessionFailed](), fact[SessionCancelled](),
	fact[InferenceRequested](), fact[InferenceStarted](), fact[InferenceCompleted](), fact[InferenceFailed](),
	fact[ToolInvocationRequested](), fact[ToolPreviewed](), fact[ApprovalRequested](), fact[ApprovalGranted](),
	fact[ApprovalDenied](), fact[ApprovalExpired](), fact[ToolExecutionStarted](), fact[ToolExecutionCompleted](),
	fact[ToolExecutionFailed](), fact[ToolExecutionRejected](), fact[CancelRequested](), fact[Recovered](),
	fact[ModelLoadRequested](), fact[ModelLoaded](), fact[ModelUnloadRequested](), fact[ModelUnloaded](),
	fact[ModelCrashed](), fact[ModelLoadFailed](),
	fact[WorkerStarted](), fact[WorkerStopped](),
	fact[CommandRejected](), fact[AuditCheckpoint](),
)

func fact[T Fact]() FactType {
	var zero T
	_, routed := any(zero).(Routed)
	return FactType{
		Name: zero.FactName(), GoName: reflect.TypeOf(zero).Name(), Version: 1, Routed: routed,
		New:    func() Fact { var z T; return z },
		decode: func(b []byte) (Fact, error) { return decodeInto[T](b) },
	}
}

func tableOf(types ...FactType) map[FactName]FactType {
	m := make(map[FactName]FactType, len(types))
	for _, t := range types {
		m[t.Name] = t
	}
	return m
}

// FactTypes returns the table of facts, ordered by name.
func FactTypes() []FactType {
	all := make([]FactType, 0, len(factTypes))
	for _, t := range factTypes {
		all = append(all, t)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// LookupFact returns the entry of a fact's name.
func LookupFact(n FactName) (FactType, bool) { t, ok := factTypes[n]; return t, ok }

// CEType returns the CloudEvents type of a payload: "correx.ToolPreviewed.v1".
func (t FactType) CEType() string { return fmt.Sprintf("correx.%s.v%d", t.GoName, t.Version) }
